"""The one table of settings: what `run` takes on its command line and what a configuration file may say.

`cli/fast.py` reads argv from it with the standard library, `cli/options.py` builds the click command from it, and
`config/` judges the keys of files with it. A key is the long option with `_`. The table is the only truth.
"""

from __future__ import annotations

from runguard import instant, values
from runguard.errors import UsageError
from runguard.model import Asked, Covers
from runguard.record import NamedTuple
from runguard.schedule.policy import FOLDS, GAPS, POLICIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CATCH_UPS = ("none", "latest", "all", "merge")
OUTPUTS = ("always", "on-failure", "never")
OVERLAPS = ("skip", "wait", "kill", "allow")
STRAGGLERS = ("leave", "wait", "kill")
PING_STYLES = (
    "healthchecks", "betterstack", "kuma", "cronitor", "sentry", "snitch", "pushgateway", "template", "plain",
)  # fmt: skip

# Where a setting may stand.
OPTION, KEY, BOTH, TOP, STORE = "option", "key", "both", "top", "store"


class Setting(NamedTuple):
    """One setting. `name` is its key; the long option is `--name` with `-` for `_`."""

    name: str
    kind: str  # text path file url template secret choice duration size integer flag job moment patterns command
    help: str
    default: object = None
    place: str = BOTH  # OPTION: command line only; KEY: files only; TOP: command line and top level of a file;
    # STORE: top level of files only, for it is about the store that all jobs share
    field: str = ""  # of Settings, where the unit is part of its name
    short: str = ""  # "j" for -j
    metavar: str = ""
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0
    # What breaks with a bad value. "": usage error as an option, loud and passed over as a key. "window", "ping",
    # "that ping": loud, and the job runs without it. "store", "overlap": starting would be unsafe.
    breaks: str = ""

    @property
    def option(self) -> str:
        """The long option."""
        return "--" + self.name.replace("_", "-")

    @property
    def into(self) -> str:
        """The field of Settings."""
        return self.field or self.name

    @property
    def is_option(self) -> bool:
        """Whether `run` takes it on its command line."""
        return self.place not in (KEY, STORE)

    def is_key(self, *, top: bool) -> bool:
        """Whether a file may say it, at its top level or in the table of a job."""
        return self.place in (KEY, BOTH) or (top and self.place in (TOP, STORE))


class Settings(NamedTuple):
    """Every setting of one start, typed. Spans in seconds, sizes in bytes."""

    job: str
    schedule: str | None
    timezone: str | None
    policy: str
    gap: str | None
    fold: str | None
    shell: bool
    like_cron: bool
    timeout_s: float | None
    kill_after_s: float
    overlap: str
    wait_s: float | None
    retries: int
    retry_delay_s: float
    catch_up: str
    catch_up_limit: int
    output: str
    ping: str | None
    ping_style: str | None
    stragglers: str
    scheduled_at_us: int | None
    reason: str | None
    conflict_exit: int
    dry_run: bool
    store: str | None
    command: str | tuple[str, ...] | None
    on_lost: str
    on_store_failure: str
    grace_s: float
    deadline_s: float | None
    max_age_s: float | None
    alarm_after: int
    min_time_s: float
    retry_timeouts: bool
    early_s: float
    ping_start: bool
    ping_success_url: str | None
    ping_start_url: str | None
    ping_fail_url: str | None
    ping_on_skip: str
    ping_output: str
    ping_body_limit: int
    ping_api_url: str | None
    ping_api_key: str | None  # as it was given: file:/PATH is read by ping --sync alone
    mask: tuple[str, ...]
    output_head_bytes: int
    output_tail_bytes: int
    verify_within_s: float
    sign_key: str | None
    anchor: str | None

    @property
    def ping_urls(self) -> tuple[str, ...]:
        """Every address that is told of runs; all are secrets."""
        urls = (self.ping, self.ping_success_url, self.ping_start_url, self.ping_fail_url)
        return tuple(url for url in urls if url)


TABLE = (
    Setting("job", "job", "Name of the job (default: the command's file name).", place=OPTION, short="j",
            metavar="NAME"),
    Setting("schedule", "text", "What the job answers: five cron fields, @daily and its like, or 'RRULE:FREQ=…' with"
            " 'DTSTART:…' before it or not.", short="s", metavar="TEXT", breaks="window"),
    Setting("timezone", "text", "Time zone of the schedule (default: the host's).", short="z", metavar="ZONE",
            breaks="window"),
    Setting("policy", "choice", "What daylight saving does to windows.", "vixie", choices=POLICIES, breaks="window"),
    Setting("gap", "choice", "A due time that the clock skips: first instant after the gap, moved by its length, or no"
            " window (default: by the policy).", choices=GAPS, breaks="window"),
    Setting("fold", "choice", "A due time that the clock repeats: which occurrence counts (default: by the policy).",
            choices=FOLDS, breaks="window"),
    Setting("shell", "flag", "COMMAND is one string for /bin/sh -c, as cron itself would run it.", False,
            place=OPTION, short="c"),
    Setting("like_cron", "flag", "Try a line by hand: cron's environment (HOME, LOGNAME, SHELL=/bin/sh,"
            " PATH=/usr/bin:/bin), the home directory, no terminal.", False, place=OPTION),
    Setting("timeout", "duration", "Stop the command after D: TERM to its process group (default, and 0: never).",
            field="timeout_s", short="t", metavar="D"),
    Setting("kill_after", "duration", "KILL what is left D after the TERM.", 10.0, field="kill_after_s", metavar="D"),
    Setting("overlap", "choice", "While an earlier run of the job lives: refuse this start; wait for its end; stop it"
            " and run; run beside it.", "skip", choices=OVERLAPS, breaks="overlap"),
    Setting("wait", "duration", "Wait at most D for an earlier run, then refuse (default: until the next due); by"
            " itself it means --overlap wait.", field="wait_s", metavar="D"),
    Setting("retries", "integer", "Further attempts in the same window after a failure, each with a record of its own.",
            0, metavar="N", low=0, high=1000),
    Setting("retry_delay", "duration", "Wait D before the first further attempt, twice as long before each next.", 10.0,
            field="retry_delay_s", metavar="D"),
    Setting("output", "choice", "What of the command's output reaches our own stdout and stderr.", "always",
            choices=OUTPUTS),
    Setting("ping", "url", "Heartbeat address; file:/PATH reads it from a file.", metavar="URL", breaks="ping"),
    Setting("ping_style", "choice", "How the monitor wants its pings (default: recognised by host and path).",
            choices=PING_STYLES, breaks="ping"),
    Setting("stragglers", "choice", "Processes that the command leaves behind: left alone and named in the record;"
            " waited for, within the timeout; or told to end, KILL later.", "leave", choices=STRAGGLERS),
    Setting("scheduled_at", "moment", "The intended instant, known from elsewhere.", place=OPTION,
            field="scheduled_at_us", metavar="INSTANT"),
    Setting("reason", "text", "A person runs this by hand, and why; runs even if the window is done.", place=OPTION,
            metavar="TEXT"),
    Setting("conflict_exit", "integer", "Exit status when refused because an earlier run lives.", 75, metavar="N",
            low=0, high=255),
    Setting("catch_up", "choice", "Windows missed before this one: leave them; answer them with this run; run each,"
            " oldest first, before this one; or one run whose window spans them.", "none", choices=CATCH_UPS),
    Setting("catch_up_limit", "integer", "At most so many runs of --catch-up all in one start.", 100, metavar="N",
            low=1, high=100_000),
    Setting("dry_run", "flag", "Say which window this would answer, what would happen and why; do nothing.", False,
            place=OPTION),
    Setting("store", "path", "SQLite file of the records (default: db/runguard.sqlite in the state directory).",
            place=TOP, metavar="URL", breaks="store"),
    Setting("command", "command", "What rerun and catchup run: a text for /bin/sh -c, or a list of arguments (default:"
            " what was recorded).", place=KEY),
    Setting("on_lost", "choice", "A window whose run was lost is held for a person, or run again.", "hold", place=KEY,
            choices=("hold", "rerun")),
    Setting("on_store_failure", "choice", "Run with the journal when the store fails, or refuse (74).", "run",
            place=KEY, choices=("run", "refuse")),
    Setting("grace", "duration", "A window counts as missing only this long after it was due.", 300.0, place=KEY,
            field="grace_s", metavar="D"),
    Setting("deadline", "duration", "A window is not worth running later than this after it was due (default: it is).",
            place=KEY, field="deadline_s", metavar="D"),
    Setting("max_age", "duration", "check warns when the last success is older than this, and is critical when it is"
            " twice as old (default: it may be).", place=KEY, field="max_age_s", metavar="D"),
    Setting("alarm_after", "integer", "check is critical after so many refused starts in a row.", 3, place=KEY,
            metavar="N", low=1, high=1_000_000),
    Setting("min_time", "duration", "A success that ends sooner is marked as suspect.", 0.0, place=KEY,
            field="min_time_s", metavar="D"),
    Setting("retry_timeouts", "flag", "Whether retries follow a run that was stopped at its time limit, too.", False,
            place=KEY),
    Setting("early", "duration", "A start this much before a due time already answers it.", 5.0, place=KEY,
            field="early_s", metavar="D"),
    Setting("ping_start", "flag", "Whether the start of a run is reported too.", True, place=KEY),
    Setting("ping_success_url", "template", "Address to GET after a success, with {exit}, {run_id}, {duration}, {due},"
            " {host} and {job} filled in.", place=KEY, metavar="URL", breaks="that ping"),
    Setting("ping_start_url", "template", "The same, beside the command a second after its start.", place=KEY,
            metavar="URL", breaks="that ping"),
    Setting("ping_fail_url", "template", "The same, after any other end.", place=KEY, metavar="URL",
            breaks="that ping"),
    Setting("ping_on_skip", "choice", "What monitors are told of a start that is refused.", "none", place=KEY,
            choices=("none", "log", "success", "failure")),
    Setting("ping_output", "choice", "When the output's tail goes into a ping's body.", "on-failure", place=KEY,
            choices=OUTPUTS),
    Setting("ping_body_limit", "size", "Longest body of a ping.", 10_000, place=KEY, metavar="SIZE"),
    Setting("ping_api_url", "url", "Healthchecks server that ping --sync speaks to (default: that of the address).",
            place=KEY, metavar="URL"),
    Setting("ping_api_key", "secret", "Its API key of the project; file:/PATH reads it from a file.", place=KEY,
            metavar="KEY"),
    Setting("mask", "patterns", "Regular expressions of secrets to mask in records and pings.", (), place=KEY),
    Setting("output_head", "size", "How much of the output's beginning is kept.", 64 << 10, place=KEY,
            field="output_head_bytes", metavar="SIZE"),
    Setting("output_tail", "size", "How much of the output's end is kept.", 1 << 20, place=KEY,
            field="output_tail_bytes", metavar="SIZE"),
    Setting("verify_within", "duration", "`check` warns when nobody has verified the record for longer (0: never).",
            35 * 86_400.0, place=STORE, field="verify_within_s", metavar="D"),
    Setting("sign_key", "file", "Private SSH key that signs the ledger's daily checkpoints.", place=STORE),
    Setting("anchor", "text", "A line for /bin/sh that is given each checkpoint's number and hash on its stdin, to keep"
            " them elsewhere.", place=STORE),
)  # fmt: skip

BY_NAME = {setting.name: setting for setting in TABLE}
QUIET = ("output", "on-failure")  # what -q and --quiet stand for


class Request(NamedTuple):
    """A command line of `run`, read. What decides windows and pings is raw text, judged later: it never stops a job."""

    values: dict[str, object]  # setting name → value, only what was given
    command: tuple[str, ...]
    job: str  # given, or from the command's file name
    asked: Asked | None = None  # the window to answer, where it is not a matter of the clock
    covers: Covers | None = None  # what it answers besides


class Problem(NamedTuple):
    """A fault in settings: one line with its place, and what it costs."""

    text: str
    severity: str = "remark"  # or "unsafe": nothing may start
    breaks: str = ""  # "window", "ping", "that ping", "store", "overlap": what this start does without


def option_value(setting: Setting, text: str) -> object:
    """Return what an option's text means. Raise ValueError where that would be a usage error."""
    return text if setting.breaks in ("window", "ping") else parse(setting, text)


def request(given: Mapping[str, object], command: Sequence[str]) -> Request:
    """Return a checked request. Raise UsageError where the command or its name is missing."""
    shell = bool(given.get("shell"))
    if not command:
        raise UsageError("run: no COMMAND is given (runguard run [OPTIONS] [--] COMMAND [ARGUMENT]...)")
    if shell and len(command) > 1:
        raise UsageError(f"run: --shell takes one string, and {len(command)} arguments are given: quote the command")
    job = given.get("job")
    if job is None:
        try:
            job = values.job_name_of(command, shell=shell)
        except ValueError as error:
            raise UsageError(f"run: --job NAME is needed: {error}") from None
    values_given = dict(given)
    if "wait" in given:
        values_given.setdefault("overlap", "wait")
    return Request(values_given, tuple(command), str(job))


def parse(setting: Setting, text: str) -> object:
    """Return the value that `text` spells. Raise ValueError with the reason; a secret is never quoted in it."""
    match setting.kind:
        case "choice":
            return values.one_of(text, setting.choices)
        case "duration":
            return values.duration(text)
        case "size":
            return values.size(text)
        case "integer":
            return values.integer(text, setting.low, setting.high)
        case "job":
            return values.job_name(text)
        case "moment":
            return _moment(text)
        case "url":
            return _of_a_check(_url(text))
        case "template":
            return _template(text)
        case "path":
            return _path(text)
        case "file":
            return _file(text)
    if not text.strip():
        raise ValueError("is empty")
    return text


def parse_key(setting: Setting, value: object) -> object:
    """Return what a file's value means. Raise ValueError with the reason."""
    match setting.kind, value:
        case "flag", bool():
            return value
        case "command", [str(), *rest] if all(isinstance(each, str) for each in rest):
            return tuple(str(each) for each in value)
        case "command", str() if value.strip():
            return value
        case "patterns", [*patterns] if all(isinstance(each, str) for each in patterns):
            return _patterns([str(each) for each in patterns])
        case "duration", int() | float() if not isinstance(value, bool):
            return values.at_most(float(value), value)
        case "size", int() if not isinstance(value, bool):
            return values.whole(value, 0, 1 << 30)
        case "integer", int() if not isinstance(value, bool):
            return values.whole(value, setting.low, setting.high)
        case (("flag" | "patterns" | "integer" | "command"), _):
            raise ValueError(f"{_WANTED[setting.kind]} is wanted")
        case _, str():
            return parse(setting, value)
    raise ValueError(f"{_WANTED.get(setting.kind, 'a text in quotes')} is wanted")


_WANTED = {
    "flag": "true or false",
    "command": "a text, or a list of texts",
    "patterns": "a list of regular expressions",
    "integer": "a number",
    "duration": 'a duration ("90s", "15m", 90)',
    "size": 'a size ("64k", 65536)',
}


def _moment(text: str) -> int:
    """Return the UTC microseconds of an RFC 3339 instant with an offset.

    Sixteen digits are microseconds since 1970, as systemd gives them in `$TRIGGER_TIMER_REALTIME_USEC`.
    """
    if len(text) == 16 and text.isascii() and text.isdigit():
        return int(text)
    spelled = text[:10] + "T" + text[11:] if text[10:11] in (" ", "t") else text
    try:
        return instant.from_rfc3339(spelled)
    except ValueError:
        raise ValueError(f"{text!r} is no instant with an offset (2026-03-29T02:30:00+01:00, or …Z)") from None


def _url(text: str) -> str:
    scheme, found, rest = text.partition("://")
    host = rest.partition("/")[0].rpartition("@")[2]
    if not found or scheme.lower() not in ("http", "https") or not host.strip(":"):
        raise ValueError("is no address (https://…)" if text.strip() else "is empty")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("holds characters that no address has")
    _, colon, port = host.partition("?")[0].rpartition("]")[2].rpartition(":")
    if colon and port and not (port.isdigit() and len(port) < 6 and 0 < int(port) < 65_536):
        raise ValueError("has no valid port")
    return text


def _of_a_check(url: str) -> str:
    """Return the address of a check; a monitor's address for one event alone would turn every event into that one."""
    last = url.partition("#")[0].partition("?")[0].rstrip("/").rpartition("/")[2]
    if last in ("start", "fail", "log") or last.isdigit():
        from runguard.heartbeat.styles import event_alone  # only where it looks like one

        if event_alone(url):
            raise ValueError(f"ends in /{last}: give the check's own address, without it")
    return url


def _template(text: str) -> str:
    from runguard.heartbeat.styles.template import flaw  # only where there is one

    url = _url(text)
    if why := flaw(url):
        raise ValueError(why)
    return url


def _path(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    if "://" in text:
        scheme = text.partition("://")[0]
        raise ValueError(f"records are kept in an SQLite file; {values.short(scheme + '://')} is not known")
    if "\0" in text or text.endswith("/"):
        raise ValueError(f"{values.short(text)} is not the path of a file")
    return text


def _file(text: str) -> str:
    if not text.startswith("/") or "\0" in text or text.endswith("/"):
        raise ValueError(f"{values.short(text)} is not an absolute path of a file")
    return text


def _patterns(patterns: list[str]) -> tuple[str, ...]:
    import re  # paid only by those who configured patterns

    for pattern in patterns:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"{values.short(pattern)} is no regular expression: {error}") from None
    return tuple(patterns)
