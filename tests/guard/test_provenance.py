"""Which code a run ran."""

import subprocess
from pathlib import Path

from runguard.guard.provenance import Code, describe, hash_slowly

HELLO_SHA256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"


def test_the_script_behind_an_interpreter_is_hashed(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text("hello\n")
    assert describe("/bin/sh", (str(script), "--all")).inputs == (Code(str(script), 6, HELLO_SHA256),)


def test_only_the_first_five_files_count(tmp_path: Path) -> None:
    for number in range(7):
        (tmp_path / f"{number}").write_text("hello\n")
    inputs = describe(None, tuple(str(tmp_path / f"{number}") for number in range(7))).inputs
    assert [Path(code.path).name for code in inputs] == ["0", "1", "2", "3", "4"]


def test_directories_options_and_devices_are_no_code(tmp_path: Path) -> None:
    assert describe(None, (str(tmp_path), "-x", "/dev/null", "", "no such file", "a\0b")).inputs == ()


def test_a_large_file_is_hashed_beside_the_command(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"hello\n" + bytes(1 << 20))
    code = describe(str(large), ())
    assert code.program == Code(str(large), (1 << 20) + 6, None)
    found: list[Code] = []
    assert len(list(hash_slowly(code.unhashed(), found))) == 2
    # printf 'hello\n' | cat - <(head -c 1048576 /dev/zero) | sha256sum
    expected = subprocess.run(["sha256sum", large], capture_output=True, text=True, check=True).stdout.split()[0]
    assert found == [Code(str(large), (1 << 20) + 6, expected)]


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_commit_of_the_scripts_work_tree_is_read_without_git(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "jobs").mkdir()
    script = tmp_path / "jobs" / "job.sh"
    script.write_text("true\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert describe("/bin/sh", (str(script),)).commit == commit
    git(tmp_path, "pack-refs", "--all")
    assert describe("/bin/sh", (str(script),)).commit == commit
    git(tmp_path, "worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    assert describe("/bin/sh", (str(tmp_path / "linked" / "jobs" / "job.sh"),)).commit == commit
