"""Which monitors a job has: the one of `ping`, and the one whose addresses are templates."""

from __future__ import annotations

from runguard.heartbeat import styles
from runguard.heartbeat.styles.template import flaw
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.heartbeat.event import Event, Request
    from runguard.settings import Settings


class Target(NamedTuple):
    """One monitor. Its addresses are secrets."""

    style: str
    urls: tuple[tuple[str, str], ...]  # (kind of event, the address that is told of it)
    is_ping: bool = False  # the one of `ping`

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return its different addresses: what it is known by."""
        return tuple(dict.fromkeys(url for _, url in self.urls))

    def url(self, kind: str) -> str:
        """Return the address that is told of such events, or ""."""
        return dict(self.urls).get(kind, "")

    def request(self, event: Event) -> Request | None:
        """Return what this monitor is sent for `event`, or None if it is told nothing then."""
        url = self.url(event.kind)
        return styles.request(self.style, url, event) if url else None


class Targets(NamedTuple):
    """The monitors of a job, and why addresses of it cannot be used: lines that hold nothing of them."""

    targets: tuple[Target, ...]
    flaws: tuple[str, ...]


def targets_of(settings: Settings) -> Targets:
    """Return the monitors that the settings of a start name."""
    found: list[Target] = []
    flaws: list[str] = []
    templates = (
        ("start", settings.ping_start_url),
        ("success", settings.ping_success_url),
        ("failure", settings.ping_fail_url),
    )
    if settings.ping and not _is_flawed(settings.ping, settings.ping_style == "template", flaws):
        style = settings.ping_style or styles.detect(settings.ping)
        # A template says nothing of what happened unless it is one event's alone.
        kinds = ("success",) if style == "template" else styles.KINDS
        found.append(Target(style, tuple((kind, settings.ping) for kind in kinds), is_ping=True))
    urls = tuple((kind, url) for kind, url in templates if url and not _is_flawed(url, True, flaws))
    if urls:
        found.append(Target("template", urls))
    return Targets(tuple(found), tuple(flaws))


def _is_flawed(url: str, template: bool, flaws: list[str]) -> bool:
    why = styles.usable(url) if not template else flaw(url)
    if why:
        flaws.append(why)
    return why is not None
