"""Bad invocations and configurations: what is typed, the one line that is said, and the exit status.

`{dir}` stands for the test's directory, `{uid}` for our uid, `{account}` for its name. `config` is the content of
runguard.toml (line 1 first), `files` are written before. Where the job runs all the same the status is its own: 0, of
`true`.
"""

from __future__ import annotations

from typing import NamedTuple


class Bad(NamedTuple):
    """One row of the table."""

    arguments: tuple[str, ...]
    message: str
    status: int
    config: str = ""
    environ: dict[str, str] = {}  # noqa: RUF012
    files: dict[str, str] = {}  # noqa: RUF012


TRUE = ("run", "-j", "letters", "true")
NO_JOB = "letters, digits, '.', '_', '-'; a letter or digit first"
NO_DURATION = "is no duration (90s, 15m, 2h, 1h30m, 7d)"
NO_INSTANT = "is no instant with an offset (2026-03-29T02:30:00+01:00, or …Z)"
NO_WHEN = (
    "is no instant (2026-03-29, 2026-03-29T02:30+01:00, 29 March 2026, 14:00, yesterday 14:00, last monday, 3 days"
    " ago, 7d)"
)
FIVE_FIELDS = (
    "a schedule is five cron fields such as '30 2 * * *', one of @hourly @daily @midnight @weekly @monthly @yearly"
    " @annually, or 'RRULE:FREQ=…' with 'DTSTART:…' before it or not"
)
WITHOUT_WINDOW = "; the job runs without a window"
NOTHING = "nothing has been recorded yet in {dir}/state (account {account}; each account has its own records)"
POLICIES = "vixie, walk, systemd, quartz, shift"

# The command line is wrong: nothing is started.
USAGE = [
    Bad((), "no command is given (runguard -h lists them)", 2),
    Bad(("",), "no such command: '' (runguard -h lists them)", 2),
    Bad(("runn", "true"), "no such command: 'runn'; did you mean run?", 2),
    Bad(("histry",), "no such command: 'histry'; did you mean history?", 2),
    Bad(("frobnicate",), "no such command: 'frobnicate' (runguard -h lists them)", 2),
    Bad(("a\nb\x1b[2J",), r"no such command: 'a\nb\x1b[2J' (runguard -h lists them)", 2),
    Bad(("--hlp",), "no such option: --hlp; did you mean --help?", 2),
    Bad(("run",), "run: no COMMAND is given (runguard run [OPTIONS] [--] COMMAND [ARGUMENT]...)", 2),
    Bad(("run", "--"), "run: no COMMAND is given (runguard run [OPTIONS] [--] COMMAND [ARGUMENT]...)", 2),
    Bad(("run", "--tmeout", "5", "true"), "run: no such option: --tmeout; did you mean --timeout?", 2),
    Bad(("run", "--sched", "@daily", "true"), "run: no such option: --sched; did you mean --schedule?", 2),
    Bad(("run", "--overlap", "both", "true"), "run: --overlap: 'both' is not one of skip, wait, kill, allow", 2),
    Bad(("run", "--wait", "-1", "true"), "run: --wait: '-1' is no duration (90s, 15m, 2h, 1h30m, 7d)", 2),
    Bad(("run", "--retries", "-1", "true"), "run: --retries: '-1' is not a number from 0 to 1000", 2),
    Bad(("run", "--retries", "1001", "true"), "run: --retries: 1001 is not a number from 0 to 1000", 2),
    Bad(("run", "--retry-delay", "x", "true"), "run: --retry-delay: 'x' is no duration (90s, 15m, 2h, 1h30m, 7d)", 2),
    Bad(("run", "-Q", "true"), "run: no such option: -Q", 2),
    Bad(("run", "-j"), "run: -j: a value is missing", 2),
    Bad(("run", "--timeout"), "run: --timeout: a value is missing", 2),
    Bad(("run", "--quiet=yes", "true"), "run: --quiet: takes no value", 2),
    Bad(("run", "--dry-run=1", "true"), "run: --dry-run: takes no value", 2),
    Bad(("run", "-c", "-j", "x", "echo", "hi"),
        "run: --shell takes one string, and 2 arguments are given: quote the command", 2),
    Bad(("run", "-c", "echo hi"), "run: --job NAME is needed: a shell string has no name of its own", 2),
    Bad(("run", "python3", "job.py"), "run: --job NAME is needed: 'python3' runs many jobs and names none", 2),
    Bad(("run", "/bin/sh", "job.sh"), "run: --job NAME is needed: 'sh' runs many jobs and names none", 2),
    Bad(("run", "sudo", "-u", "ann", "true"), "run: --job NAME is needed: 'sudo' runs many jobs and names none", 2),
    Bad(("run", "/opt/my job"), f"run: --job NAME is needed: 'my job' is no job name ({NO_JOB})", 2),
    Bad(("run", ""), f"run: --job NAME is needed: '' is no job name ({NO_JOB})", 2),
    Bad(("run", "-j", "", "true"), f"run: -j: '' is no job name ({NO_JOB})", 2),
    Bad(("run", "-j", "../x", "true"), f"run: -j: '../x' is no job name ({NO_JOB})", 2),
    Bad(("run", "-j", ".hidden", "true"), f"run: -j: '.hidden' is no job name ({NO_JOB})", 2),
    Bad(("run", "-j", "a\nb", "true"), rf"run: -j: 'a\nb' is no job name ({NO_JOB})", 2),
    Bad(("run", "-j", "läuft", "true"), f"run: -j: 'läuft' is no job name ({NO_JOB})", 2),
    Bad(("run", "-j", "x" * 101, "true"), f"run: -j: {'x' * 60!r}… is longer than 100 characters", 2),
    Bad(("run", "-t", "5x", "true"), f"run: -t: '5x' {NO_DURATION}", 2),
    Bad(("run", "-t", "", "true"), f"run: -t: '' {NO_DURATION}", 2),
    Bad(("run", "-t", "-5", "true"), f"run: -t: '-5' {NO_DURATION}", 2),
    Bad(("run", "-t", "30m1h", "true"), f"run: -t: '30m1h' {NO_DURATION}", 2),
    Bad(("run", "-t", "1001d", "true"), "run: -t: '1001d' is not a duration from 0 to 1000 days", 2),
    Bad(("run", "--kill-after", "soon", "true"), f"run: --kill-after: 'soon' {NO_DURATION}", 2),
    Bad(("run", "--output", "sometimes", "true"),
        "run: --output: 'sometimes' is not one of always, on-failure, never", 2),
    Bad(("run", "--output", "allways", "true"),
        "run: --output: 'allways' is not one of always, on-failure, never; did you mean always?", 2),
    Bad(("run", "--conflict-exit", "256", "true"), "run: --conflict-exit: 256 is not a number from 0 to 255", 2),
    Bad(("run", "--conflict-exit", "-1", "true"), "run: --conflict-exit: '-1' is not a number from 0 to 255", 2),
    Bad(("run", "--conflict-exit", "٣", "true"), "run: --conflict-exit: '٣' is not a number from 0 to 255", 2),
    Bad(("run", "--scheduled-at", "now", "true"), f"run: --scheduled-at: 'now' {NO_INSTANT}", 2),
    Bad(("run", "--scheduled-at", "2026-03-29T02:30:00", "true"),
        f"run: --scheduled-at: '2026-03-29T02:30:00' {NO_INSTANT}", 2),
    Bad(("run", "--scheduled-at", "2026-02-30T02:30:00Z", "true"),
        f"run: --scheduled-at: '2026-02-30T02:30:00Z' {NO_INSTANT}", 2),
    Bad(("run", "--reason", " ", "true"), "run: --reason: is empty", 2),
    Bad(("run", "--store", "", "true"), "run: --store: is empty", 2),
    Bad(("run", "--store", "postgresql://u:secret@h/d", "true"),
        "run: --store: records are kept in an SQLite file; 'postgresql://' is not known", 2),
    Bad(("run", "--store", "records/", "true"), "run: --store: 'records/' is not the path of a file", 2),
    Bad(("history", "--foo"), "history: no such option: --foo", 2),
    Bad(("history", "--job", "letters"),
        "history: no such option: --job (JOB stands by itself: runguard history JOB)", 2),
    Bad(("missing", "-j", "letters"), "missing: no such option: -j (JOB stands by itself: runguard missing JOB)", 2),
    Bad(("show", "--job", "letters"), "show: no such option: --job", 2),
    Bad(("history", "a", "b"), "history: got unexpected extra argument (b)", 2),
    Bad(("history", "-n", "0"), "history: -n: 0 is not a number from 1 to 1000000000", 2),
    Bad(("history", "--limit=0"), "history: --limit: 0 is not a number from 1 to 1000000000", 2),
    Bad(("history", "-n", "many"), "history: -n: 'many' is not a number from 1 to 1000000000", 2),
    Bad(("history", "--format", "xml"), "history: --format: 'xml' is not one of table, json, jsonl, csv", 2),
    Bad(("history", "--outcome", "faild"),
        "history: --outcome: 'faild' is not one of running, succeeded, failed, timed_out, killed, cancelled, lost,"
        " superseded, refused; did you mean failed?", 2),
    Bad(("history", "--since", "yesterdayish"), f"history: --since: 'yesterdayish' {NO_WHEN}", 2),
    Bad(("history", "--until", "2026-13-01"), f"history: --until: '2026-13-01' {NO_WHEN}", 2),
    Bad(("history", "--since", ""), f"history: --since: '' {NO_WHEN}", 2),
    Bad(("history", "--since", "2026-03-02", "--until", "2026-03-01"),
        "history: --since (2026-03-02T00:00:00Z) is not before --until (2026-03-01T00:00:00Z)", 2),
    Bad(("history", "--window", "last"),
        "history: --window: 'last' is no window (a key L2026-03-29T02:30, a label 2026-03-29T03:30+01:00, a due"
        " instant)", 2),
    Bad(("history", "letters"), f"history: no job 'letters' on record; {NOTHING}", 2),
    Bad(("history", "--store", "/nowhere/rg.sqlite"), "history: store /nowhere/rg.sqlite: there is no such file", 2),
    Bad(("history", "--since", "03/04/2026"),
        "history: --since: '03/04/2026' can be read in more than one way (write 2026-03-29)", 2),
    Bad(("history", "--since", "999999 days ago"), "history: --since: '999999 days ago': no calendar goes there", 2),
    Bad(("windows", "letters"), f"windows: no job 'letters' on record; {NOTHING}", 2),
    Bad(("windows", "--since", "last week"), f"windows: --since: 'last week' {NO_WHEN}", 2),
    Bad(("windows", "--verdict", "lst"),
        "windows: --verdict: 'lst' is not one of succeeded, failed, running, lost, missing, waived, pending; did you"
        " mean lost?", 2),
    Bad(("missing", "--until", "7"), f"missing: --until: '7' {NO_WHEN}", 2),
    Bad(("missing", "--store", "/nowhere/rg.sqlite"), "missing: store /nowhere/rg.sqlite: there is no such file", 2),
    Bad(("status", "letters"), f"status: no job 'letters' on record; {NOTHING}", 2),
    Bad(("status", "--job", "letters"), "status: no such option: --job (JOB stands by itself: runguard status JOB)", 2),
    Bad(("status", "--store", "/nowhere/rg.sqlite"), "status: store /nowhere/rg.sqlite: there is no such file", 2),
    Bad(("next", "letters"), f"next: no job 'letters' on record; {NOTHING}", 2),
    Bad(("next", "letters", "-s", "@daily"), "next: JOB or --schedule, not both", 2),
    Bad(("next", "--fold", "both"), "next: --fold goes with --schedule", 2),
    Bad(("next", "-s", ""), f"schedule '': need 5 fields, got 0; {FIVE_FIELDS}", 2),
    Bad(("next", "-s", "0 0 30 2 *"),
        "schedule '0 0 30 2 *', day of month, column 5: no such date in any year: day 30 of"
        " these months", 2),
    Bad(("next", "-s", "@daily", "-z", "Mars/Olympus"), "time zone 'Mars/Olympus': not known on this host", 2),
    Bad(("next", "-s", "@daily", "--policy", "vixi"),
        f"next: --policy: 'vixi' is not one of {POLICIES}; did you mean vixie?", 2),
    Bad(("next", "-s", "@daily", "-n", "0"), "next: -n: 0 is not a number from 1 to 1000000000", 2),
    Bad(("next", "-s", "@daily", "--from", "soon"), f"next: --from: 'soon' {NO_WHEN}", 2),
    Bad(("waive",), "waive: JOB[@WINDOW] is missing", 2),
    Bad(("waive", "letters@L2026-03-29T02:30"), "waive: --reason TEXT is needed: who waives says why", 2),
    Bad(("waive", "letters@L2026-03-29T02:30", "--reason", " "),
        "waive: --reason TEXT is empty: who waives says why", 2),
    Bad(("waive", "letters", "--reason", "x"),
        "waive: 'letters' names no window: JOB@WINDOW is wanted (letters@L2026-03-29T02:30,"
        " letters@2026-03-29T03:30+01:00)", 2),
    Bad(("waive", "letters@yesterday", "--reason", "x"),
        "waive: 'yesterday' is no window (a key L2026-03-29T02:30, a label 2026-03-29T03:30+01:00, a due instant)", 2),
    Bad(("waive", "letters", "--since", "now", "--reason", "x"),
        "waive: --until is needed too: a span has two ends", 2),
    Bad(("waive", "letters", "--until", "now", "--reason", "x"),
        "waive: --since is needed too: a span has two ends", 2),
    Bad(("waive", "letters@2026-03-29", "--since", "today", "--until", "now", "--reason", "x"),
        "waive: one window (JOB@WINDOW) or a span (JOB --since --until), not both", 2),
    Bad(("waive", "letters@2026-03-29T02:30", "--reason", "x"),
        f"waive: no job 'letters' on record; {NOTHING}", 2),
    Bad(("retire",), "retire: JOB is missing", 2),
    Bad(("retire", "letters"), "retire: --reason TEXT is needed: why is the job gone?", 2),
    Bad(("retire", "letters", "--reason", "x"), f"retire: no job 'letters' on record; {NOTHING}", 2),
    Bad(("show",), "show: RUN is missing", 2),
    Bad(("show", "1"), f"show: no run '1': {NOTHING}", 2),
]  # fmt: skip

# The job runs, without what is broken.
LOUD = [
    Bad(("run", "-j", "letters", "-s", "61 2 * * *", "true"),
        f"letters: schedule '61 2 * * *', minute, column 1: 61 outside 0-59{WITHOUT_WINDOW}", 0),
    Bad(("run", "-j", "letters", "-s", "", "true"), "letters: --schedule: is empty; the job runs without a window", 0),
    Bad(("run", "-j", "letters", "-s", "@reboot", "true"),
        "letters: schedule '@reboot', column 1: need 5 fields, got 1: '@reboot' is no time of day, so it has no window"
        + WITHOUT_WINDOW, 0),
    Bad(("run", "-j", "letters", "-s", "0 0 1 1 1 1", "true"),
        f"letters: schedule '0 0 1 1 1 1', column 11: need 5 fields, got 6: '1'; {FIVE_FIELDS}{WITHOUT_WINDOW}", 0),
    Bad(("run", "-j", "letters", "-s", "RRULE:FREQ=SECONDLY", "true"),
        "letters: schedule 'RRULE:FREQ=SECONDLY', FREQ, column 7: windows begin on whole minutes: SECONDLY is none"
        + WITHOUT_WINDOW, 0),
    Bad(("run", "-j", "letters", "-s", "@daily", "-z", "Europe/Lodnon", "true"),
        f"letters: time zone 'Europe/Lodnon': not known on this host; did you mean Europe/London?{WITHOUT_WINDOW}", 0),
    Bad(("run", "-j", "letters", "-s", "@daily", "-z", "../../etc/passwd", "true"),
        f"letters: time zone '../../etc/passwd': a name such as Europe/London is wanted{WITHOUT_WINDOW}", 0),
    Bad(("run", "-j", "letters", "-s", "@daily", "--policy", "vixi", "true"),
        f"letters: --policy: 'vixi' is not one of {POLICIES}; did you mean vixie?; the job runs without a window", 0),
    Bad(("run", "-j", "letters", "-s", "@daily", "--gap", "before", "true"),
        "letters: --gap: 'before' is not one of after, shift, skip; the job runs without a window", 0),
    Bad(("run", "-j", "letters", "-s", "@daily", "--fold", "third", "true"),
        "letters: --fold: 'third' is not one of first, second, both; the job runs without a window", 0),
    Bad(("run", "-j", "letters", "--ping", "", "true"), "letters: --ping: is empty; the job runs without a ping", 0),
    Bad(("run", "-j", "letters", "--ping", "hc.example/token", "true"),
        "letters: --ping: is no address (https://…); the job runs without a ping", 0),
    Bad(("run", "-j", "letters", "--ping", "https://u.example/api/v1/heartbeat/token/fail", "true"),
        "letters: --ping: ends in /fail: give the check's own address, without it; the job runs without a ping", 0),
    Bad(TRUE, "letters: {dir}/runguard.toml:1: ping_fail_url: {status} is no placeholder; there are {exit}, {run_id},"
        " {duration}, {due}, {host}, {job}, and {{ and }} for braces; the job runs without that ping", 0,
        config="ping_fail_url = 'https://u.example/token/{status}'\n"),
    Bad(TRUE, "letters: {dir}/runguard.toml:1: ping_start_url: file:/nowhere/url: No such file or directory; the job"
        " runs without that ping", 0, config="ping_start_url = 'file:/nowhere/url'\n"),
    Bad(TRUE, "letters: {dir}/runguard.toml:1: ping_on_skip: 'fail' is not one of none, log, success, failure; did"
        " you mean failure?", 0,
        config="ping_on_skip = 'fail'\n"),
    Bad(("run", "-j", "letters", "--ping", "file:/nowhere/url", "true"),
        "letters: --ping: file:/nowhere/url: No such file or directory; the job runs without a ping", 0),
    Bad(("run", "-j", "letters", "--ping-style", "telepathy", "true"),
        "letters: --ping-style: 'telepathy' is not one of healthchecks, betterstack, kuma, cronitor, sentry, snitch,"
        " pushgateway, template, plain; the job runs without a ping", 0),
    Bad(TRUE, "letters: RUNGUARD_PING: is empty; the job runs without a ping", 0, environ={"RUNGUARD_PING": ""}),
    Bad(TRUE, "letters: {dir}/runguard.toml:1: tiemout: no such key; did you mean timeout?", 0, config="tiemout = 5\n"),
    Bad(TRUE, "letters: {dir}/runguard.toml:2: jobs.letters.timeout: 'x' is no duration (90s, 15m, 2h, 1h30m, 7d)", 0,
        config="[jobs.letters]\ntimeout = 'x'\n"),
    Bad(TRUE, "letters: {dir}/runguard.toml:2: expected '=' after a key in a key/value pair; going on without this"
        " file", 0, config="early = 1\ntimeout\n"),
    Bad(TRUE, "letters: {dir}/runguard.toml:1: schedule: a text in quotes is wanted; the job runs without a window", 0,
        config="schedule = 5\n"),
    Bad(TRUE, "letters: {dir}/runguard.toml:2: jobs.letters.schedule: '61 2 * * *', minute, column 1: 61 outside"
        f" 0-59{WITHOUT_WINDOW}", 0, config="[jobs.letters]\nschedule = '61 2 * * *'\n"),
    Bad(TRUE, "letters: {dir}/runguard.toml:1: timezone: time zone 'Europe/Lodnon': not known on this host; did you"
        f" mean Europe/London?{WITHOUT_WINDOW}", 0, config="timezone = 'Europe/Lodnon'\nschedule = '@daily'\n"),
    Bad(TRUE, "letters: {dir}/runguard.toml:1: job: no such table; the table of a job is called [jobs.NAME]", 0,
        config="[job.letters]\n"),
    Bad(TRUE, "letters: {dir}/runguard.toml:1: overlay: no such key; did you mean overlap?", 0,
        config="overlay = 'kill'\n"),
    Bad(TRUE, "letters: {dir}/runguard.toml:1: ping: is no address (https://…); the job runs without a ping", 0,
        config="ping = 'token'\n"),
    Bad(TRUE, "letters: {dir}/runguard.toml:1: mask: '(' is no regular expression: missing ), unterminated subpattern"
        " at position 0", 0, config="mask = ['(']\n"),
    Bad(TRUE, "letters: /nowhere/rg.toml: No such file or directory (RUNGUARD_CONFIG names it); going on without this"
        " file", 0, environ={"RUNGUARD_CONFIG": "/nowhere/rg.toml"}),
    Bad(TRUE, "letters: RUNGUARD_CONFIG is empty; going on without this file", 0, environ={"RUNGUARD_CONFIG": ""}),
]  # fmt: skip

# Nothing is started, because a start would be unsafe; and what every other command says of a configuration.
REFUSED = [
    Bad(TRUE, "letters: {dir}/runguard.toml:1: overlap: 'both' is not one of skip, wait, kill, allow; nothing was"
        " started", 78, config="overlap = 'both'\n"),
    Bad(TRUE, "letters: {dir}/runguard.toml:1: store: 'rg.sqlite' is not an absolute path; nothing was started", 78,
        config="store = 'rg.sqlite'\n"),
    Bad(TRUE, "letters: {dir}/runguard.toml:2: jobs.letters.store: belongs at the top level of the file; nothing was"
        " started", 78, config="[jobs.letters]\nstore = '/x'\n"),
    Bad(TRUE, "letters: RUNGUARD_STORE: 'rg.sqlite' is not an absolute path; nothing was started", 78,
        environ={"RUNGUARD_STORE": "rg.sqlite"}),
    Bad(TRUE, "letters: RUNGUARD_STATE_DIR is empty: it must be an absolute path (uid {uid}); nothing was started", 78,
        environ={"RUNGUARD_STATE_DIR": ""}),
    Bad(TRUE, "letters: RUNGUARD_STATE_DIR is 'state': it must be an absolute path (uid {uid})"
        "; nothing was started", 78,
        environ={"RUNGUARD_STATE_DIR": "state"}),
    Bad(TRUE, "letters: state directory {dir}/file: it is not a directory (uid {uid}); nothing was started", 78,
        environ={"RUNGUARD_STATE_DIR": "{dir}/file"}, files={"file": ""}),
    Bad(("history",), "{dir}/runguard.toml:1: tiemout: no such key; did you mean timeout?", 78, config="tiemout = 5\n"),
    Bad(("history",), "{dir}/runguard.toml:3: jobs.letters.schedule: '61 2 * * *', minute, column 1: 61 outside 0-59",
        78, config="\n[jobs.letters]\nschedule = '61 2 * * *'\n"),
    Bad(("show", "1"), f"{{dir}}/runguard.toml:1: jobs.'a b': 'a b' is no job name ({NO_JOB})", 78,
        config="[jobs.'a b']\n"),
    Bad(("history",), "{dir}/runguard.toml:1: invalid value", 78, config="early = \n"),
    Bad(("missing",), "{dir}/runguard.toml:3: jobs.letters.timezone: time zone 'Europe/Lodnon': not known on this host;"
        " did you mean Europe/London?", 78,
        config="[jobs.letters]\nschedule = '@daily'\ntimezone = 'Europe/Lodnon'\n"),
    Bad(("windows",), "{dir}/runguard.toml:2: jobs.letters.schedule: 'RRULE:FREQ=SECONDLY', FREQ, column 7: windows"
        " begin on whole minutes: SECONDLY is none", 78, config="[jobs.letters]\nschedule = 'RRULE:FREQ=SECONDLY'\n"),
    Bad(("history",), "{dir}/runguard.toml:1: store: 'x' is not an absolute path", 78, config="store = 'x'\n"),
    Bad(("history",), "/nowhere/rg.toml: No such file or directory (RUNGUARD_CONFIG names it)", 78,
        environ={"RUNGUARD_CONFIG": "/nowhere/rg.toml"}),
    Bad(("history",), "RUNGUARD_STORE: 'x' is not an absolute path", 78, environ={"RUNGUARD_STORE": "x"}),
    Bad(("history",), "RUNGUARD_STATE_DIR is 'state': it must be an absolute path (uid {uid})", 78,
        environ={"RUNGUARD_STATE_DIR": "state"}),
    Bad(("history", "--store", "{dir}/text"),
        "store {dir}/text: the file is corrupt or no SQLite database (file is not a database); nothing was repaired;"
        " restore a copy, or: runguard doctor --recover --reason TEXT", 74,
        files={"text": "this is no database, only text\n" * 99}),
]  # fmt: skip
