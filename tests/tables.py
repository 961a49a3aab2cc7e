"""Crontabs that hypothesis draws, with what people write in them and what they do not."""

from __future__ import annotations

from hypothesis import strategies as st

SCHEDULES = st.sampled_from(
    [b"30 2 * * *", b"*/5  *\t* * *", b"0 0-23 * * mon-fri", b"@daily", b"@reboot", b"@hourly", b"0 9 13 * 5",
     b"61 2 * * *", b"@Daily", b"5/10 * * * *", b"0 22-2 * * *", b"* * * *"]
)  # fmt: skip
PIECES = st.sampled_from(
    [b"/opt/letters/send", b"--all", b"echo", b"'", b'"', b"'a b'", b'"c d"', b"\\%", b"%", b"\\\\", b"\\", b"\\'",
     b"$HOME", b"`date`", b"$(date +\\%F)", b"|", b">", b">>/tmp/x", b"2>&1", b"&&", b";", b"#", b"=", b"A=1", b"-c",
     b"/bin/bash -c", b"/bin/bash", b"bash", b"~", b"*", b"{}", b"!", b"\xff\xfe", b"\xc3\xa4", b"\r", b"x" * 300,
     b"cd /x", b"time", b"=x", b"x'", b'x"', b"|&",
     b"<", b"(", b")", b";;", b"case x in", b"esac", b"nice -n", b"sh -c", b"\x0c", b"'runguard run'"]
)  # fmt: skip
COMMANDS = st.lists(st.tuples(PIECES, st.sampled_from([b" ", b"", b"  ", b"\t"])), min_size=1, max_size=7).map(
    lambda pairs: b"".join(piece + blank for piece, blank in pairs)
)
VARIABLES = st.sampled_from(
    [b"MAILTO=ops", b"PATH = /usr/bin:/bin", b"SHELL=/bin/bash", b"SHELL=/bin/sh", b"SHELL=/usr/bin/fish", b"SHELL=zsh",
     b"CRON_TZ = Europe/London", b'FOO="a b"', b"FOO=", b"TZ=UTC"]
)  # fmt: skip
OTHERS = st.sampled_from(
    [b"", b"  ", b"\r", b"# comment", b"#30 2 * * * /opt/letters/send", b"nonsense", b"# runguard: ignore",
     b"\t# runguard:  name=letters-x"]
)  # fmt: skip
USERS = st.sampled_from([b"root ", b"www-data\t", b"root  "])


def tables(*, system: bool) -> st.SearchStrategy[bytes]:
    """Return a strategy of whole tables, with and without a last newline."""
    blanks = st.sampled_from([b" ", b"\t", b"  ", b" \t "])
    jobs = st.tuples(
        st.sampled_from([b"", b" ", b"\t"]), SCHEDULES, blanks, USERS if system else st.just(b""), COMMANDS
    ).map(b"".join)
    lines = st.lists(st.one_of(jobs, jobs, VARIABLES, OTHERS), max_size=8)
    ends = st.sampled_from([b"\n", b"\n", b"\r\n"])
    return st.tuples(lines, ends, st.booleans()).map(
        lambda drawn: drawn[1].join(drawn[0]) + (drawn[1] if drawn[2] and drawn[0] else b"")
    )
