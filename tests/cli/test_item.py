"""`runguard item` and `show --items`: case entries from shell jobs, and read back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runguard.cli import jotting
from runguard.evidence import entries
from shell import Shell

ITEM = f"{sys.executable} -m runguard item"


def run(shell: Shell, script: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return shell("run", "-j", "x", "-c", script, **options)


def listed(shell: Shell, number: int = 1) -> list[dict[str, Any]]:
    return shell.json("show", str(number), "--items")  # type: ignore[no-any-return]


def test_an_entry_has_what_was_given(shell: Shell) -> None:
    done = run(
        shell,
        f"{ITEM} HB-1 --phase intent --action close --key k --rule R12 --reason 'Paid in full.' --field link=http://x;"
        f"{ITEM} HB-1 --phase=result --action=close --key=k --result=done",
    )
    assert (done.returncode, done.stderr) == (0, "")
    intent, result = listed(shell)
    assert {name: value for name, value in intent["item"].items() if name != "at"} == {
        "case": "HB-1",
        "phase": "intent",
        "key": "k",
        "action": "close",
        "rule": {"id": "R12"},
        "reason": "Paid in full.",
        "link": "http://x",
    }
    assert (result["case"], result["phase"], result["key"], result["result"]) == ("HB-1", "result", "k", "done")


@pytest.mark.parametrize("spelling", ["HB-1 --phase note --action a", "--phase note --action a -- -HB-1"])
def test_click_reads_what_the_quick_reader_leaves(shell: Shell, spelling: str) -> None:
    assert run(shell, f"{ITEM} {spelling}").returncode == 0
    assert listed(shell)[0]["phase"] == "note"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "CASE is missing, or --batch"),
        ("HB-1", "--phase is missing (intent, result, note)"),
        ("HB-1 --phase intend --action a", "'intend' is not one of intent, result, note; did you mean intent?"),
        ("HB-1 --phase intent", "--action is missing: what is done to the case, in a word"),
        ("HB-1 --phase result --action a", "--result is missing (done, no_action, failed, skipped)"),
        ("HB-1 --phase result --action a --result ok", "'ok' is not one of done, no_action, failed, skipped"),
        ("HB-1 --phase intent --action a --result done", "--result goes with --phase result, not with intent"),
        ("'' --phase intent --action a", "case is '', not a text"),
        ("HB-1 --phase note --action a --field x", "--field 'x': is not NAME=TEXT"),
        ("HB-1 --phase note --action a --field case=y", "--field case: the entry has that already"),
        ("HB-1 --phase note --action a --colour red", "no such option: --colour"),
        ("HB-1 HB-2 --phase note --action a", "unexpected extra argument"),
        ("HB-1 --phase", "--phase: a value is missing"),
        ("--batch HB-1", "--batch takes its entries from standard input, and nothing else"),
    ],
)
def test_a_mistake_is_said_in_one_line_and_nothing_is_added(shell: Shell, arguments: str, said: str) -> None:
    done = run(shell, f"{ITEM} {arguments}")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("runguard: item: ")
    assert said in line
    assert shell("show", "1", "--items").stdout == ""


@pytest.mark.parametrize("arguments", [("HB-1", "--phase", "note", "--action", "a"), ("--batch",)])
def test_outside_of_a_run_it_is_said_how_to_get_into_one(shell: Shell, arguments: tuple[str, ...]) -> None:
    done = shell("item", *arguments)
    said = "case entries belong to a run: start the job through runguard run -- COMMAND, which sets RUNGUARD_ITEMS"
    assert (done.returncode, done.stderr) == (2, f"runguard: item: {said}\n")


def test_an_entry_that_cannot_be_written_is_74(shell: Shell) -> None:
    environ = {"RUNGUARD_ITEMS": str(shell.directory / "gone")}
    done = shell("item", "HB-1", "--phase", "note", "--action", "a", environ=environ)
    assert done.returncode == 74
    assert (
        done.stderr
        == f"runguard: item: {shell.directory}/gone: No such file or directory; the entry is not on record\n"
    )


def test_a_batch_adds_what_is_good_and_names_what_is_bad_by_its_line(shell: Shell) -> None:
    (shell.directory / "in").write_bytes(
        b'{"expected": 2}\n{"case":"HB-1","phase":"note","action":"a", "more":[1]}\n\ngarbage\n'
        b'{"case":"HB-2","phase":"note","action":"' + b"x" * 70_000 + b'"}\n{"case":"HB-3","phase":"note","action":"a"}'
    )
    done = run(shell, f"{ITEM} --batch < in; echo $?")
    assert done.stdout == "1\n"
    assert done.stderr.splitlines()[:2] == [
        "runguard: item: line 4: it is no JSON: Expecting value (character 1)",
        "runguard: item: line 5: it is 65538 bytes long, more than 65536",
    ]
    assert [each["case"] for each in listed(shell)] == ["HB-1", "HB-3"]
    assert listed(shell)[0]["item"] == {"case": "HB-1", "phase": "note", "action": "a", "more": [1]}
    assert shell.json("show", "1")[0]["items"]["expected"] == 2


def test_of_many_bad_lines_twenty_are_named(shell: Shell) -> None:
    (shell.directory / "in").write_text("bad\n" * 25)
    done = shell("item", "--batch", environ={"RUNGUARD_ITEMS": "/nowhere"}, stdin=open(shell.directory / "in"))  # noqa: SIM115
    assert len(done.stderr.splitlines()) == 21
    assert done.stderr.splitlines()[-1] == "runguard: item: 5 more lines are no entries"


def test_the_plain_form_needs_no_click(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "items"
    file.touch(0o600)
    code = (
        "import sys\nfrom runguard.cli.fast import main, answer\nimport os\n"
        "status = answer(['item', 'HB-1', '--phase', 'note', '--action', 'a'], dict(os.environ))\n"
        "print(status, *sorted({'click', 'json', 're', 'threading', 'datetime', 'typing'} & set(sys.modules)))"
    )
    environ = {**shell.environ, "RUNGUARD_ITEMS": str(file)}
    done = subprocess.run([sys.executable, "-S", "-c", code], env=environ, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
    assert entries.judge(file.read_bytes().rstrip(b"\n")).case == "HB-1"


def test_the_quick_reader_knows_the_words_of_entries() -> None:
    assert (jotting.PHASES, jotting.RESULTS) == (entries.PHASES, entries.RESULTS)


# show --items


HOSTILE = b'{"case":"HB\\n1","phase":"note","action":"\\u001b[31m"}\n\x1b]52;c;eHg=\x07\xff\n'


def test_entries_are_listed_with_what_is_none_between_them_and_nothing_hostile_is_printed_raw(shell: Shell) -> None:
    (shell.directory / "in").write_bytes(HOSTILE)
    run(shell, "cat in >> $RUNGUARD_ITEMS")
    shown = shell("show", "1", "--items").stdout
    assert shown.isascii()
    assert "\x1b" not in shown
    assert shown.splitlines()[0].split() == ["ENTRY", "RECEIVED", "CASE", "SAYS", "ACTION", "RULE", "REASON"]
    assert "HB\\n1" in shown
    assert "\\x1b[31m" in shown
    assert "rejected" in shown
    assert "\\x1b]52;c;eHg=\\x07\\xff" in shown
    good, bad = listed(shell)
    assert (good["case"], good["rejected"]) == ("HB\n1", None)
    assert bad["rejected"]["why"] == "it is no UTF-8 (byte 13)"
    assert bad["case"] is None


def test_a_run_without_entries_says_so(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    done = shell("show", "1", "--items")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "runguard: run 1 has no case entries on record\n")
    assert shell.json("show", "1")[0]["items"] is None
    assert shell("show", "1", "--items", "--json").stdout == "[]\n"


def test_entries_and_output_are_two_questions(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    done = shell("show", "1", "--items", "--output")
    assert done.returncode == 2
    assert done.stderr == "runguard: show: --items and the output are two questions: ask one at a time\n"


def test_entries_are_listed_as_csv(shell: Shell) -> None:
    run(shell, f"{ITEM} HB-1 --phase note --action a; echo bad >> $RUNGUARD_ITEMS")
    head, first, second = shell("show", "1", "--items", "--format", "csv").stdout.splitlines()
    assert head == "entry,offset,received_at,case,phase,key,action,result,rejected_why"
    assert first.endswith(",HB-1,note,,a,,")
    assert second.endswith(",,,,,,it is no JSON: Expecting value (character 1)")


def test_a_run_is_told_with_its_cases(shell: Shell) -> None:
    run(shell, f"{ITEM} HB-1 --phase intent --action a; {ITEM} HB-2 --phase result --action a --result skipped")
    shown = shell("show", "1").stdout
    assert (
        "  cases         1 of 2 cases accounted for (2 entries: 1 skipped)\n                1 case uncertain\n" in shown
    )
    assert "  uncertain     HB-1\n" in shown
    [told] = shell.json("show", "1")
    assert told["suspect"] == "1 of 2 cases accounted for: 1 case uncertain"
    assert told["items"]["uncertain"] == 1
