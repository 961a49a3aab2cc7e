"""What is on record for the windows of a span: starts, covers, refusals and waivers. Imported by those who ask."""

from __future__ import annotations

from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from runguard.store.reads import Reader


class Start(NamedTuple):
    """A start, or a refused start, as the verdict on windows needs it. Its fields are the columns of `coverage`."""

    run_id: str
    number: int
    key: str
    due_us: int
    outcome: str
    why: str | None
    seq: int  # of the start; the latest start or waiver by sequence decides
    covers_first_us: int | None
    covers_last_us: int | None
    suspect: str | None
    guard_pid: int | None
    boot_id: str | None
    exit_status: int | None
    attempt: int | None  # None for a refused start
    start_us: int  # of the window, as it was recorded
    label: str | None
    nominal: str | None


class Waiver(NamedTuple):
    """A person answered for one window, or for the dues in `(since_us, until_us]`; or took that back."""

    seq: int
    key: str | None
    since_us: int | None
    until_us: int | None
    withdraw: bool
    reason: str | None
    actor: str | None
    at_us: int
    host: str


class Span(NamedTuple):
    """The dues that a catch-up covers besides its own, both ends included."""

    first_us: int
    last_us: int
    number: int  # of the run


class Refusal(NamedTuple):
    """A start for a window that was not let run."""

    due_us: int
    key: str
    number: int
    why: str  # of model.REFUSALS


def coverage(reader: Reader, job: str, after_us: int, until_us: int) -> Iterator[Start]:
    """Yield the starts of a span; see `Reader.coverage`."""
    for row in reader.rows("coverage", job=job, after_us=after_us, until_us=until_us):
        yield Start(*row)


def waivers(reader: Reader, job: str, after_us: int, until_us: int) -> list[Waiver]:
    """Return the waivers of a job; see `Reader.waivers`."""
    found = [Waiver(*row) for row in reader.rows("waivers", job=job, after_us=after_us, until_us=until_us)]
    return [waiver._replace(withdraw=bool(waiver.withdraw)) for waiver in found]
