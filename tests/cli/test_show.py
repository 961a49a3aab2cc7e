"""`show RUN`: one run, whole."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runguard.guard.frames import Frame, encode
from runguard.store.reads import Ping

Entry = Callable[..., tuple[str, str, dict[str, Any]]]
ID = "00000001-0000-4000-8000-000000000000"


@pytest.fixture
def recorded(shell: Any, started: Entry, finished: Entry, refused: Entry) -> Any:
    code = {"path": "/opt/letters/send", "sha256": None, "size": 5_000_000}
    shell.write(
        started(1, argv=["/opt/letters/send", "it's"], program=code, commit="c0ffee", remarks=["zone: odd"], attempt=2),
        finished(
            1,
            "failed",
            exit_status=3,
            returned=3,
            hashed=[{**code, "sha256": "5ead"}],
            output={
                "merged": False,
                "stdout": {"bytes": 9, "sha256": "aa", "omitted_bytes": 4},
                "stderr": {"bytes": 0, "sha256": "bb", "omitted_bytes": 0},
                "omitted_bytes": 4,
            },
            stragglers=[{"pid": 99, "command": "daemon \x1b[2J"}],
            remarks=["a ping was late"],
        ),
        refused(2),
    )
    return shell


def keep(shell: Any, head: list[Frame], tail: list[Frame]) -> None:
    with shell.open() as store, store.write() as transaction:
        transaction.keep_output(ID, encode(head), encode(tail))


def test_everything_on_record_for_a_person(recorded: Any) -> None:
    with recorded.open() as store:
        store.record_pings(
            ID,
            [
                Ping("start", "healthchecks", "https://hc.example/…ea278", "accepted", 200, 1, 1, 250_000, None),
                Ping("failure", "healthchecks", "https://hc.example/…ea278", "retry", None, 3, 2, None, "timed out"),
            ],
        )
    done = recorded("show", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "run 1 of letters: failed (exit status 3), took 1m32s",
        "  id            00000001-0000-4000-8000-000000000000",
        "  window        2026-03-29T02:30+01:00 (L2026-03-29T02:30), 2026-03-28T02:30:00Z to 2026-03-29T01:30:00Z",
        "  schedule      '30 2 * * *' in Europe/London (policy vixie, tzdata 2026a), revision 1",
        "  late          2.00s",
        "  attempt       2",
        "  trigger       schedule",
        "  by            ann",
        "  host          alpha",
        "  started       2026-03-29 01:30:02+00:00 (2026-03-29T01:30:02Z)",
        "  finished      2026-03-29 01:31:34+00:00 (2026-03-29T01:31:34Z)",
        """  command       /opt/letters/send 'it'"'"'s'""",
        "  directory     /home/ann",
        "  PATH          /usr/bin:/bin",
        "  program       /opt/letters/send, 5000000 bytes, sha256 5ead",
        "  commit        c0ffee",
        "  with          runguard 0.1.0, Python 3.11.2",
        "  used          1.25s user, 0.50s system, at most 3.0 MiB of memory",
        "  output        stdout: 9 bytes, sha256 aa",
        "                4 bytes were not kept",
        r"  left behind   pid 99: daemon \x1b[2J",
        "  ping          start (healthchecks) to https://hc.example/…ea278: accepted, HTTP 200, 0.25s",
        "  ping          failure (healthchecks) to https://hc.example/…ea278: not delivered, timed out after 3 tries",
        "  remark        zone: odd",
        "  remark        a ping was late",
        "  ledger        1 (run.start), 2 (run.finish)",
    ]


def test_a_refused_start_names_the_holder(recorded: Any) -> None:
    lines = recorded("show", "2").stdout.splitlines()
    assert lines[0] == "run 2 of letters: refused (runguard returned 75, overlap)"
    assert "  held by       run 1, pid 4712 since 2026-03-29 01:30:02+00:00: /opt/letters/send --all" in lines
    assert "  because       run 1 still runs" in lines


def test_a_replaced_run_and_its_replacement_name_each_other(recorded: Any, started: Entry) -> None:
    recorded.write(started(3, supersedes=ID, trigger="manual", reason="ticket 7"))
    assert "  superseded by run 3 (running, 00000003-0000-4000-8000-000000000000)" in recorded("show", "1").stdout
    shown = recorded("show", "3").stdout
    assert f"  supersedes    run 1 (failed, {ID})" in shown
    assert "  trigger       manual: ticket 7" in shown


def test_a_merged_run_tells_what_it_covers(shell: Any, started: Entry) -> None:
    covers = {"first": "2026-03-27T02:30:00Z", "last": "2026-03-29T01:30:00Z", "count": 3}
    shell.write(started(1, covers=covers))
    lines = shell("show", "1").stdout.splitlines()
    assert "  covers        3 windows, due from 2026-03-27T02:30:00Z to 2026-03-29T01:30:00Z" in lines


def test_a_living_run_tells_its_pid_and_how_long_it_has_run(shell: Any) -> None:
    done = shell("run", "-j", "letters", "-c", f"echo $$; exec {sys.executable} -m runguard show 1")
    pid, *lines = done.stdout.splitlines()
    (now,) = [line for line in lines if line.startswith("  now ")]
    assert re.fullmatch(rf"  now           guard pid \d+ lives, command pid {pid}, for \d\.\d\ds", now)


def test_a_lost_run_has_no_end_on_record(shell: Any, started: Entry) -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    shell.write(started(1, boot_id=boot))
    assert shell("show", "1").stdout.splitlines()[0] == (
        "run 1 of letters: lost (no end on record; guard and command are gone)"
    )


def test_a_terminal_breaks_lines_between_words_but_no_command(recorded: Any, started: Entry) -> None:
    recorded.write(started(3, argv=["/opt/letters/send", *["--to-everybody"] * 9], remarks=["a remark of words " * 9]))
    lines = recorded.on_terminal("show", "3", columns=60).splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("  remark "))
    assert lines[at : at + 2] == [
        "  remark        a remark of words a remark of words a remark",
        "                of words a remark of words a remark of words",
    ]
    assert f"  command       /opt/letters/send {' '.join(['--to-everybody'] * 9)}" in lines


def test_the_name_of_a_job_is_no_run(recorded: Any) -> None:
    done = recorded("show", "letters")
    hint = "that is a job; name a run (runguard history letters lists them)"
    assert (done.returncode, done.stderr) == (2, f"runguard: show: no run 'letters': {hint}\n")


@pytest.mark.parametrize("name", ["1", ID, "00000001", ID.upper()])
def test_a_run_has_several_names(recorded: Any, name: str) -> None:
    assert recorded.json("show", name)[0]["number"] == 1


def test_json_is_an_array_of_one_with_the_ledgers_facts(recorded: Any) -> None:
    (told,) = recorded.json("show", "1")
    assert told["window"]["schedule"]["expression"] == "30 2 * * *"
    assert told["argv"] == ["/opt/letters/send", "it's"]
    assert told["actor"] == "ann"
    assert told["account"] == {"uid": 1000, "user": "ann", "login": "ann", "sudo_user": None}
    assert told["remarks"] == ["zone: odd", "a ping was late"]
    assert told["program"]["sha256"] == "5ead"
    assert told["entries"] == [
        {"seq": 1, "kind": "run.start", "at": "2026-03-29T01:30:02Z"},
        {"seq": 2, "kind": "run.finish", "at": "2026-03-29T01:31:34Z"},
    ]


EVERY_BYTE = bytes(range(256))


def test_output_into_a_pipe_is_exact(recorded: Any) -> None:
    keep(recorded, [Frame(1, 0, EVERY_BYTE), Frame(2, 5, b"err\n")], [Frame(1, 9, b"end\xff")])
    done = recorded("show", "--output", "1")
    assert done.stdout.encode("utf-8", "surrogateescape") == EVERY_BYTE.replace(b"\r", b"\n") + b"err\nend\xff"
    assert done.stderr == "runguard: 4 bytes between the beginning and the end were not kept\n"


def test_output_on_a_terminal_is_escaped(recorded: Any) -> None:
    keep(recorded, [Frame(1, 0, b"a\x1b]52;c;eA==\x07\tb\n\xff\xe2\x80\xae")], [Frame(1, 9, b"end\n")])
    assert recorded.on_terminal("show", "--output", "1") == (
        "a\\x1b]52;c;eA==\\x07\tb\n\\xff\\u202e\n[4 bytes between the beginning and the end were not kept]\nend\n"
    )


def test_a_run_without_output_says_so(recorded: Any) -> None:
    done = recorded("show", "--output", "1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "runguard: run 1 has no output on record\n")


def test_one_stream_alone_comes_with_what_is_missing_of_it(recorded: Any) -> None:
    keep(recorded, [Frame(1, 0, b"a"), Frame(2, 5, b"err\n"), Frame(1, 7, b"b\n")], [Frame(1, 9, b"c\n")])
    alone = recorded("show", "--stderr", "1")
    assert (alone.stdout, alone.stderr) == ("err\n", "")
    assert recorded("show", "--stdout", "1").stdout == "ab\nc\n"
    assert recorded("show", "--stdout", "--stderr", "1").stdout == "aerr\nb\nc\n"


def test_of_one_pipe_for_both_streams_neither_comes_alone(shell: Any, started: Entry, finished: Entry) -> None:
    shell.write(started(1), finished(1, output={"merged": True, "omitted_bytes": 0}))
    keep(shell, [Frame(1, 0, b"out and err\n")], [])
    done = shell("show", "--stderr", "1")
    assert (done.stdout, done.stderr) == (
        "out and err\n",
        "runguard: stdout and stderr of run 1 were one pipe: this is both\n",
    )
    assert shell("show", "--times", "1").stdout == "2026-03-29 01:30:02.000+00:00  stdout+stderr  out and err\n"


def test_with_times_each_line_tells_when_and_from_where(recorded: Any) -> None:
    frames = [Frame(1, 0, b"one\ntw"), Frame(2, 250, b"e\x1br\xffr\xe2\x80\xae\n"), Frame(1, 61_500, b"o\n")]
    keep(recorded, frames, [Frame(1, 90_000, b"end")])
    assert recorded("show", "--times", "1").stdout.splitlines() == [
        "2026-03-29 01:30:02.000+00:00  stdout  one",
        "2026-03-29 01:30:02.000+00:00  stdout  tw",
        r"2026-03-29 01:30:02.250+00:00  stderr  e\x1br\xffr\u202e",
        "2026-03-29 01:31:03.500+00:00  stdout+ o",
        "[4 bytes between the beginning and the end were not kept]",
        "2026-03-29 01:31:32.000+00:00  stdout  end",
    ]


def test_as_json_the_output_is_what_each_stream_wrote_when(recorded: Any) -> None:
    keep(recorded, [Frame(1, 0, EVERY_BYTE), Frame(2, 250, b"err\n")], [Frame(1, 9000, b"end")])
    every, err, gap, end = recorded.json("show", "--output", "1")
    assert every["text"].startswith("\0\1\2")
    assert every["text"].endswith(r"\xfd\xfe\xff")
    assert err == {
        "at": "2026-03-29T01:30:02.25Z", "after_s": 0.25, "stream": "stderr", "omitted_bytes": 0, "text": "err\n",
    }  # fmt: skip
    assert gap == {"at": None, "after_s": None, "stream": None, "omitted_bytes": 4, "text": None}
    assert end["stream"] == "stdout"
    assert recorded.json("show", "--stderr", "1") == [err]


def test_a_living_run_shows_its_output_so_far(shell: Any) -> None:
    look = f"{sys.executable} -m runguard show --stderr 1 >seen 2>&1; grep err seen && break"
    script = f"echo out; echo err >&2; for look in 1 2 3 4 5 6 7 8 9; do {look}; done"
    assert shell("run", "-j", "letters", "-c", script).stdout == "out\nerr\n"


def test_a_living_run_tells_that_both_streams_are_one_pipe(shell: Any) -> None:
    look = f"{sys.executable} -m runguard show --stderr 1 >seen 2>said; grep err seen && break"
    script = f"echo out; echo err >&2; for look in 1 2 3 4 5 6 7 8 9; do {look}; done"
    shell("run", "-j", "letters", "-c", script, stderr=subprocess.STDOUT)
    assert (shell.directory / "seen").read_text() == "out\nerr\n"
    said = "runguard: stdout and stderr of run 1 were one pipe: this is both\n"
    assert (shell.directory / "said").read_text() == said
