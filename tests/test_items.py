"""The helper that jobs import: what it writes, and that it stops a job that cannot be explained."""

from __future__ import annotations

import ast
import contextlib
import datetime
import decimal
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runguard import items
from runguard.evidence import entries
from shell import SOURCE


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a run that we are in."""
    path = tmp_path / "items"
    path.touch(0o600)
    monkeypatch.setenv("RUNGUARD_ITEMS", str(path))
    monkeypatch.setenv("RUNGUARD_RUN_ID", "r")
    for name in ("RUNGUARD_DONE", "RUNGUARD_UNCERTAIN", "RUNGUARD_ITEMS_SYNC"):
        monkeypatch.delenv(name, raising=False)
    return path


def written(path: Path) -> list[dict[str, Any]]:
    """Return the entries, each judged as the guard does. Beside another process's write an empty line may come."""
    assert path.read_bytes().endswith(b"\n")
    lines = [line for line in path.read_bytes().split(b"\n") if line]
    for line in lines:
        entries.judge(line)
    return [json.loads(line) for line in lines]


def test_the_intent_is_on_file_before_the_case_is_touched_and_its_end_writes_done(file: Path) -> None:
    with items.case("HB-1042", action="reminder", rule={"id": "R7"}):
        [intent] = written(file)
    assert (intent["case"], intent["phase"], intent["action"], intent["rule"]) == (
        "HB-1042",
        "intent",
        "reminder",
        {"id": "R7"},
    )
    result = written(file)[1]
    assert (result["phase"], result["result"], result["key"]) == ("result", "done", intent["key"])


@pytest.mark.parametrize("result", ["done", "no_action", "skipped", "failed"])
def test_a_job_says_itself_what_came_of_a_case(file: Path, result: str) -> None:
    with items.case("HB-1", action="reminder") as case:
        getattr(case, result)(reason="because")
    _, said = written(file)
    assert (said["result"], said["reason"]) == (result, "because")


def test_an_exception_is_a_failure_of_its_type_and_goes_on_its_way(file: Path) -> None:
    with pytest.raises(LookupError, match="Ann Lee"), items.case("HB-1", action="reminder"):
        raise LookupError("Ann Lee")
    assert written(file)[1]["error"] == "LookupError"
    assert written(file)[1]["result"] == "failed"
    assert b"Ann" not in file.read_bytes()


def test_an_exception_after_the_result_is_a_note(file: Path) -> None:
    case = items.case("HB-1", action="reminder")
    with contextlib.suppress(LookupError), case:
        case.done()
        raise LookupError
    assert [each.get("result") or each["error"] for each in written(file)[1:]] == ["done", "LookupError"]


def test_notes_are_about_a_case_in_hand_or_any_other(file: Path) -> None:
    items.note("HB-2", action="look", reason="It is closed.")
    with items.case("HB-1", action="reminder") as case:
        case.note(weather="dry")
    assert [(each["case"], each["phase"]) for each in written(file)] == [
        ("HB-2", "note"),
        ("HB-1", "intent"),
        ("HB-1", "note"),
        ("HB-1", "result"),
    ]


def test_a_key_may_be_the_jobs_own(file: Path) -> None:
    with items.case("HB-1", action="reminder", key="letter 7"):
        pass
    assert [each["key"] for each in written(file)] == ["letter 7"] * 2


def test_dates_and_decimals_are_written_as_text_and_no_number_is_none(file: Path) -> None:
    fields = {
        "on": datetime.date(2026, 3, 29),
        "sum": decimal.Decimal("1.10"),
        "odd": [float("nan"), {"x": float("inf")}],
    }
    with items.case("HB-1", action="reminder", **fields):
        pass
    [intent, _] = written(file)
    assert (intent["on"], intent["sum"], intent["odd"]) == ("2026-03-29", "1.10", ["nan", {"x": "inf"}])


def test_the_number_of_expected_cases_comes_first(file: Path) -> None:
    items.expected(6000)
    assert file.read_bytes() == b'{"expected":6000}\n'
    with pytest.raises(items.NotRecorded, match="comes before all entries"):
        items.expected(6000)


@pytest.mark.parametrize("case", ["", " ", "x" * 201, "a\0b", "a\ud800", 1042, None])
def test_what_is_no_case_id_is_refused_before_anything_is_touched(file: Path, case: Any) -> None:
    with pytest.raises(ValueError, match="case"):
        items.case(case, action="reminder")
    assert file.read_bytes() == b""


def test_what_every_entry_has_cannot_be_given_again(file: Path) -> None:
    with (
        pytest.raises(ValueError, match="phase: every case entry has that already"),
        items.case("HB-1", "x", phase="y"),
    ):
        pytest.fail("it was touched")


def test_an_intent_that_is_too_long_is_refused_before_anything_is_touched(file: Path) -> None:
    with pytest.raises(ValueError, match="too long"), items.case("HB-1", action="reminder", inputs="x" * 70_000):
        pytest.fail("it was touched")
    assert file.read_bytes() == b""


def test_a_result_that_is_too_long_leaves_out_its_largest_fields_by_name(file: Path) -> None:
    with items.case("HB-1", action="reminder") as case:
        case.done(before="x" * 40_000, after="y" * 50_000, reason="kept")
    said = written(file)[1]
    assert (said["result"], said["reason"], said["omitted"]) == ("done", "kept", ["after"])


DEEP: Any = 1
for _ in range(101):
    DEEP = [DEEP]
UNFIT: list[Any] = [{1: "a", "1": "b"}, DEEP, {(1, 2): 3}, 10**5000]


@pytest.mark.parametrize("value", UNFIT, ids=["a key twice", "deep", "a tuple as key", "endless number"])
def test_what_would_be_no_entry_is_refused_before_anything_is_touched(file: Path, value: Any) -> None:
    with pytest.raises((ValueError, TypeError)), items.case("HB-1", action="reminder", inputs=value):
        pytest.fail("it was touched")
    assert file.read_bytes() == b""


@pytest.mark.parametrize("value", UNFIT, ids=["a key twice", "deep", "a tuple as key", "endless number"])
def test_what_no_result_can_hold_is_left_out_by_name(file: Path, value: Any) -> None:
    with items.case("HB-1", action="reminder") as case:
        case.done(after=value, reason="kept")
    said = written(file)[1]
    assert (said["result"], said["reason"], said["omitted"]) == ("done", "kept", ["after"])


def test_a_key_of_a_note_is_one(file: Path) -> None:
    with pytest.raises(ValueError, match="key is 5"):
        items.note("HB-1", "called", key=5)
    assert file.read_bytes() == b""


def test_nobody_expects_more_cases_than_an_entry_can_say(file: Path) -> None:
    with pytest.raises(ValueError, match="is not a number of cases"):
        items.expected(10**9 + 1)


def test_an_id_with_a_newline_is_one_line(file: Path) -> None:
    with items.case("HB\n1042", action="reminder"):
        pass
    assert [each["case"] for each in written(file)] == ["HB\n1042"] * 2


def test_what_was_torn_before_stays_a_line_of_its_own(file: Path) -> None:
    file.write_bytes(b'{"case":"HB-0","pha')
    items.note("HB-1", action="look")
    torn, note, _ = file.read_bytes().split(b"\n")
    assert torn == b'{"case":"HB-0","pha'
    assert entries.judge(note).case == "HB-1"


def job(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python that imports the helper, in a process of its own."""
    environ = {**os.environ, "PYTHONPATH": SOURCE}
    command = [sys.executable, "-c", f"import os, resource, sys\nfrom runguard import items\n{code}", *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)


def test_a_write_that_comes_out_short_stops_the_job(file: Path) -> None:
    code = """
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    for n in range(10):
        with items.case(f"HB-{n}", action="reminder"):
            print(f"HB-{n}")
except items.NotRecorded as error:
    sys.exit(f"stopped: {error.strerror}")
"""
    done = job(code)
    assert done.returncode == 1
    assert done.stderr.startswith("stopped: ")
    touched = done.stdout.split()
    *whole, torn = file.read_bytes().split(b"\n")
    assert len(file.read_bytes()) == 1000
    assert 0 < len(touched) < 10
    assert torn != b""
    assert {entries.judge(line).case for line in whole} == set(touched)


def test_without_its_file_a_run_is_stopped(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUNGUARD_ITEMS")
    with pytest.raises(items.NotRecorded, match="no file for case entries"), items.case("HB-1", action="reminder"):
        pytest.fail("it was touched")


def test_after_the_end_of_its_run_a_job_is_stopped(file: Path) -> None:
    items.note("HB-1", action="look")
    file.unlink()
    with pytest.raises(items.NotRecorded, match="No such file"):
        items.note("HB-2", action="look")


def test_by_hand_nothing_is_written_and_nothing_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("RUNGUARD_ITEMS", "RUNGUARD_RUN_ID", "RUNGUARD_DONE", "RUNGUARD_UNCERTAIN"):
        monkeypatch.delenv(name, raising=False)
    assert not items.recording()
    items.expected(2)
    with items.case("HB-1", action="reminder") as case:
        case.done()
    assert (items.done(), items.uncertain()) == (frozenset(), frozenset())
    assert capfd.readouterr() == ("", "")


def test_a_descriptor_that_was_closed_and_reused_is_not_written_to(file: Path, tmp_path: Path) -> None:
    code = """
items.note("HB-1", action="look")
os.closerange(3, 200)
others = [open(f"{sys.argv[1]}/other{n}", "w") for n in range(20)]
items.note("HB-2", action="look")
"""
    assert job(code, str(tmp_path)).stderr == ""
    assert [each["case"] for each in written(file)] == ["HB-1", "HB-2"]
    assert [path.stat().st_size for path in tmp_path.glob("other*")] == [0] * 20


def many(file: Path, start: Callable[[Callable[[str], None]], None]) -> list[dict[str, Any]]:
    def work(name: str) -> None:
        for n in range(200):
            with items.case(f"{name}-{n}", action="reminder", reason="x" * 300):
                pass

    start(work)
    found = written(file)
    assert len(found) == 1600
    assert len({each["key"] for each in found}) == 800
    return found


def test_threads_may_share_it(file: Path) -> None:
    def start(work: Callable[[str], None]) -> None:
        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    many(file, start)


def test_forked_children_may_share_it(file: Path) -> None:
    items.done()

    def start(work: Callable[[str], None]) -> None:
        children = []
        for name in "abcd":
            pid = os.fork()
            if pid == 0:
                work(name)
                os._exit(0)
            children.append(pid)
        assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4

    many(file, start)


def test_each_line_can_be_made_durable(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNGUARD_ITEMS_SYNC", "1")
    synced = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    items.note("HB-1", action="look")
    assert len(synced) == 1


def test_earlier_attempts_are_read_back(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "done").write_text('HB-1\n"HB\\n2"\n"\\"quoted"\nHB-ü\u2028x\n')
    (tmp_path / "uncertain").write_text("")
    monkeypatch.setenv("RUNGUARD_DONE", str(tmp_path / "done"))
    monkeypatch.setenv("RUNGUARD_UNCERTAIN", str(tmp_path / "uncertain"))
    assert items.done() == {"HB-1", "HB\n2", '"quoted', "HB-ü\u2028x"}
    assert items.uncertain() == frozenset()


def test_it_imports_nothing_of_the_package_and_little_else() -> None:
    tree = ast.parse(Path(items.__file__).read_text())
    imported = {
        name
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert imported == {"__future__", "errno", "os", "stat", "time", "_thread"}
    inside = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert inside - imported == {"json"}


def test_its_limits_are_those_of_the_guard() -> None:
    from runguard.evidence import lists

    assert (items.MOST_LINE_BYTES, items.MOST_CHARACTERS) == (entries.MOST_LINE_BYTES, entries.MOST_CHARACTERS)
    assert items.MOST_FILE_BYTES == lists.MOST_BYTES
