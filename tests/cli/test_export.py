"""`export`: a bundle that a stranger checks with its own VERIFY.sh, without runguard and without Python."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest

import oldruns
from oldruns import both, checkpoint, done, entry, intent, record, rows
from runguard.evidence import bundle
from shell import Shell

RULE = "Nobody is written to twice.\n"
SHELLS = [shell for shell in ("dash", "bash", "busybox sh") if shutil.which(shell.split()[0])]
with_ssh = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs ssh-keygen")


@pytest.fixture
def letters(shell: Shell) -> Shell:
    """Two runs (entries 1 and 2; 4 and 5) of 3 and 2 cases, the first with a torn line, and a checkpoint (3)."""
    rule = {"id": "R7", "sha256": hashlib.sha256(RULE.encode()).hexdigest()}
    said = intent("HB-2", rule=rule, reason="Álvaro hat 28 Tage geschwiegen: \\ $HOME `id` \u2028 …") + done("HB-2")
    record(shell, 1, "2025-01-01T02:00:00Z", both("HB-1") + said + both("HB-3") + b"torn\n")
    checkpoint(shell, "2025-01-03T00:00:00Z")
    record(shell, 2, "2025-01-04T02:00:00Z", both("HB-2", "HB-4"))
    return shell


def export(shell: Shell, *arguments: str, to: str = "bundle") -> Path:
    told = shell("export", *arguments, "-o", to)
    assert told.returncode == 0, told.stderr
    return shell.directory / to


def verify(directory: Path, *anchors: str, shell: str = "sh") -> subprocess.CompletedProcess[str]:
    """Run VERIFY.sh where there is neither runguard nor an environment."""
    command = ["env", "-i", "PATH=/usr/bin:/bin", *shell.split(), str(directory / "VERIFY.sh"), *anchors]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd="/")


def renewed(directory: Path) -> None:
    """Write MANIFEST anew, as somebody would who changed a file."""
    files = sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())
    lines = [f"{digest(directory / name)}  {name}\n" for name in files if name != "MANIFEST"]
    (directory / "MANIFEST").write_text("".join(lines))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_bundle_holds_exactly_what_bears_on_the_case(letters: Shell) -> None:
    letters("correct", "2", "--wrong", "the date", "--reason", "typo")
    letters("hold", "--case", "HB-3", "--reason", "another's")
    made = export(letters, "--case", "HB-2")
    lines = [line for (line,) in rows(letters, "SELECT line FROM ledger WHERE seq IN (1, 2, 4, 5, 6) ORDER BY seq")]
    assert (made / "entries.jsonl").read_bytes() == b"".join(lines)
    records = [line for (line,) in rows(letters, "SELECT line FROM item WHERE case_id = 'HB-2' ORDER BY id")]
    assert (made / "records.jsonl").read_bytes() == b"".join(records)
    assert len((made / "checkpoints.jsonl").read_text().splitlines()) == 2
    assert "HB-2 was touched 2 times, by 2 runs of letters: 2 done." in (made / "explanation.txt").read_text()


def test_no_other_case_is_spelled_in_a_bundle(letters: Shell) -> None:
    letters("hold", "--case", "HB-3", "--reason", "another's")
    made = export(letters, "--case", "HB-2")
    everything = b"".join(path.read_bytes() for path in made.rglob("*") if path.is_file())
    assert b"HB-2" in everything
    for case in (b"HB-1", b"HB-3", b"HB-4"):
        assert case not in everything


@pytest.mark.parametrize("shell_name", SHELLS)
def test_it_verifies_itself_without_runguard(letters: Shell, shell_name: str) -> None:
    made = export(letters, "--case", "HB-2")
    told = verify(made, shell=shell_name)
    assert told.stdout == (
        "OK     4 entries, 4 records, 2 checkpoints (0 signed)\n"
        f"OK     SHA-256 of MANIFEST: {digest(made / 'MANIFEST')}\n"
    )
    assert (told.returncode, told.stderr) == (0, "")


def test_one_changed_byte_in_any_file_fails_and_names_the_file(letters: Shell) -> None:
    made = export(letters, "--case", "HB-2")
    for path in sorted(path for path in made.rglob("*") if path.is_file() and path.name != "VERIFY.sh"):
        data = path.read_bytes()
        for at in (len(data) // 3, len(data) - 2):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            told = verify(made)
            assert told.returncode == 1, (path, at)
            if path.name != "MANIFEST":
                assert str(path.relative_to(made)) in told.stdout
        path.write_bytes(data)
    assert verify(made).returncode == 0


@with_ssh
def test_what_is_evidence_cannot_be_changed_with_a_new_manifest(letters: Shell) -> None:
    key = letters.directory / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    letters.config.write_text(f'sign_key = "{key}"\n')
    made = export(letters, "--case", "HB-2", "--with", str(rule_file(letters)))
    assert verify(made).stdout.startswith("OK     4 entries, 4 records, 2 checkpoints (1 signed)\n")
    no_evidence = {"README", "VERIFY.sh", "MANIFEST", "explanation.txt", "explanation.html"}
    for path in sorted(path for path in made.rglob("*") if path.is_file() and path.name not in no_evidence):
        data = path.read_bytes()
        at = len(data) // 2
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        renewed(made)
        told = verify(made)
        path.write_bytes(data)
        assert (told.returncode, told.stdout.startswith("WRONG")) == (1, True), path
    renewed(made)
    assert verify(made).returncode == 0


@with_ssh
def test_a_key_that_was_exchanged_since_is_told(letters: Shell) -> None:
    for name in ("old", "new"):
        key = letters.directory / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        letters.config.write_text(f'sign_key = "{key}"\n')
        record(letters, 3 + (name == "new"), "2025-01-05T02:00:00Z", both("HB-2"))
        made = export(letters, "--case", "HB-2", to=f"with-{name}")
        assert verify(made).returncode == 0
    first, said, second = (made / "allowed_signers").read_text().splitlines()
    assert first.split()[1:] == (letters.directory / "new.pub").read_text().split()[:2]
    assert said == "# not the key that this host signs with now: ask whose it is"
    assert second.split()[1:] == (letters.directory / "old.pub").read_text().split()[:2]


def test_a_file_that_was_added_or_removed_is_found(letters: Shell) -> None:
    made = export(letters, "--case", "HB-2")
    (made / "lists" / "more").write_text("x")
    assert "lists/more: it is not in MANIFEST" in verify(made).stdout
    (made / "lists" / "more").unlink()
    (made / "explanation.txt").unlink()
    assert "explanation.txt" in verify(made).stdout


def test_a_line_that_was_added_to_manifest_is_no_way_around_it(letters: Shell) -> None:
    made = export(letters, "--case", "HB-2")
    with open(made / "MANIFEST", "a") as manifest:
        manifest.write("x\n")
    assert "these lines are no checksums" in verify(made).stdout


def forged(line: bytes) -> bytes:
    """Return a line with a word changed, as somebody would whom it does not suit."""
    changed = line.replace(b'"done"', b'"skip"').replace(b'"outcome":"succeeded"', b'"outcome":"cancelled"')
    assert changed != line
    return changed


def test_a_forged_record_is_found_where_the_list_of_its_run_was_taken_out(letters: Shell) -> None:
    made = export(letters, "--case", "HB-4")
    (place,) = (made / "lists").iterdir()
    first, last = (made / "records.jsonl").read_bytes().splitlines(keepends=True)
    (made / "records.jsonl").write_bytes(first + forged(last))
    group = (place / "g00001").read_text()
    new = group.replace(hashlib.sha256(last).hexdigest(), hashlib.sha256(forged(last)).hexdigest())
    assert new != group
    (place / "g00001").write_text(new)
    (place / "run").unlink()
    renewed(made)
    told = verify(made)
    assert (told.returncode, "run: the list of the run is missing" in told.stdout) == (1, True)


def test_a_forged_entry_is_found_where_a_list_was_put_beside_for_it(letters: Shell) -> None:
    made = export(letters, "--case", "HB-2")
    lines = (made / "entries.jsonl").read_bytes().splitlines(keepends=True)
    lines[1] = forged(lines[1])
    (made / "entries.jsonl").write_bytes(b"".join(lines))
    for name, said in (("0000000001", "there is no such checkpoint"), ("newer", "entry 2 is not the one")):
        (made / "checkpoints" / name).write_text(f"{hashlib.sha256(lines[1]).hexdigest()}  e0000000002\n")
        renewed(made)
        told = verify(made)
        assert (told.returncode, said in told.stdout) == (1, True)
        (made / "checkpoints" / name).unlink()


@pytest.mark.parametrize("name", ["entries.jsonl", "records.jsonl", "checkpoints.jsonl"])
def test_what_is_evidence_cannot_be_left_out_with_a_new_manifest(letters: Shell, name: str) -> None:
    made = export(letters, "--case", "HB-2")
    data = (made / name).read_bytes()
    (made / name).unlink()
    renewed(made)
    told = verify(made)
    assert (told.returncode, f"WRONG  {name}: it is not in MANIFEST" in told.stdout) == (1, True)
    for changed in (data.replace(b'"v":1', b'"v":\0001'), data[:-1]):  # what a shell reads as the same line
        (made / name).write_bytes(changed)
        renewed(made)
        told = verify(made)
        assert (told.returncode, f"WRONG  {name}: it is not lines of text" in told.stdout) == (1, True)


@pytest.mark.parametrize("name", ["entries.jsonl", "records.jsonl"])
def test_lines_that_were_swapped_or_doubled_are_found(letters: Shell, name: str) -> None:
    made = export(letters, "--case", "HB-2")
    first, second, *rest = (made / name).read_bytes().splitlines(keepends=True)
    for lines in ([second, first, *rest], [first, first, second, *rest], [first, second, *rest, first]):
        (made / name).write_bytes(b"".join(lines))
        renewed(made)
        told = verify(made)
        assert (told.returncode, f"WRONG  {name}: " in told.stdout, "not in order" in told.stdout) == (1, True, True)


@pytest.mark.parametrize("name", [".hidden", "lists/.hidden", "a/b/c/d"])
def test_a_file_that_was_hidden_in_it_is_found(letters: Shell, name: str) -> None:
    made = export(letters, "--case", "HB-2")
    (made / name).parent.mkdir(parents=True, exist_ok=True)
    (made / name).write_text("x")
    assert f"{name}: it is not in MANIFEST" in verify(made).stdout


def test_anchors_are_held_against_it(letters: Shell) -> None:
    made = export(letters, "--case", "HB-2")
    lines = dict(rows(letters, "SELECT seq, line FROM ledger"))
    anchors = [f"{seq}:{hashlib.sha256(lines[seq]).hexdigest()}" for seq in (1, 3, 6)]
    told = verify(made, *anchors)
    assert told.stdout.splitlines()[:3] == [f"ANCHOR {anchor} holds" for anchor in anchors]
    assert told.returncode == 0
    for wrong in (f"1:{'0' * 64}", "6:" + anchors[2][2:20], "99:" + anchors[2][2:]):
        told = verify(made, wrong)
        assert (told.returncode, f"WRONG  anchor {wrong}" in told.stdout) == (1, True)


def test_the_script_is_plain_shell() -> None:
    script = Path(bundle.__file__).parent / "VERIFY.sh"
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    told = subprocess.run(["shellcheck", script], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (0, "")


def test_the_same_export_is_the_same_bytes(letters: Shell) -> None:
    first = export(letters, "--case", "HB-2", to="a.tar.gz").read_bytes()
    again = export(letters, "--case", "HB-2", to="c")
    with tarfile.open(letters.directory / "a.tar.gz") as tar:
        manifest = tar.extractfile("a/MANIFEST")
        assert manifest is not None
        assert manifest.read() == (again / "MANIFEST").read_bytes()
    (letters.directory / "a.tar.gz").unlink()
    assert export(letters, "--case", "HB-2", to="a.tar.gz").read_bytes() == first


def test_the_export_is_on_record_with_its_hash(letters: Shell) -> None:
    made = export(letters, "--case", "HB-2", "--reason", "request 12")
    [(last,)] = rows(letters, "SELECT max(seq) FROM ledger")
    said = entry(letters, last)
    assert (said["kind"], said["about"], said["how"], said["reason"]) == (
        "access", [{"case": "HB-2"}], "export", "request 12",
    )  # fmt: skip
    assert said["bundle_sha256"] == digest(made / "MANIFEST")


def test_an_archive_holds_the_same_and_is_private(letters: Shell) -> None:
    archive = export(letters, "--case", "HB-2", to="case.tar.gz")
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    subprocess.run(["tar", "-xzf", archive, "-C", letters.directory], check=True)
    assert verify(letters.directory / "case").returncode == 0
    assert {stat.S_IMODE(path.stat().st_mode) for path in (letters.directory / "case").rglob("*")} == {0o600, 0o700}


def test_a_directory_is_private_whatever_the_umask(letters: Shell) -> None:
    os.umask(0)
    try:
        made = export(letters, "--case", "HB-2")
    finally:
        os.umask(0o022)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (made, *made.rglob("*"))}
    assert modes == {0o600, 0o700}


def test_a_job_is_exported_with_all_its_cases(letters: Shell) -> None:
    letters("correct", "--run", "1", "--wrong", "the host", "--reason", "typo")
    record(letters, 3, "2025-01-04T03:00:00Z", both("X-1"), job="bills")
    made = export(letters, "--job", "letters")
    cases = [json.loads(line)["item"]["case"] for line in (made / "records.jsonl").read_bytes().splitlines()]
    assert cases == ["HB-1", "HB-1", "HB-2", "HB-2", "HB-3", "HB-3", "HB-2", "HB-2", "HB-4", "HB-4"]
    said = (made / "explanation.txt").read_text()
    assert said.startswith("job letters: 2 runs.\n")
    assert "corrected the record of run" in said
    assert verify(made).returncode == 0
    assert "X-1" not in (made / "records.jsonl").read_text()


def test_a_span_of_a_job_is_exported(letters: Shell) -> None:
    made = export(letters, "--job", "letters", "--since", "2025-01-02", "--until", "2025-02-01")
    runs = {json.loads(line)["run"] for line in (made / "records.jsonl").read_bytes().splitlines()}
    assert runs == {oldruns.run_id(2)}
    assert verify(made).returncode == 0


def test_a_span_without_a_run_is_exported_and_verifies(letters: Shell) -> None:
    told = verify(export(letters, "--job", "letters", "--since", "2025-02-01", "--until", "2025-02-02"))
    assert (told.returncode, told.stdout.splitlines()[0].split(", ")[1], told.stderr) == (0, "0 records", "")


def test_many_records_of_a_run_are_in_many_groups(letters: Shell) -> None:
    record(letters, 3, "2025-01-05T02:00:00Z", both(*(f"N-{n}" for n in range(60))))
    one = export(letters, "--case", "N-55", to="one")
    assert [path.name for path in sorted((one / "lists" / oldruns.run_id(3)).iterdir())] == ["g00002", "run"]
    assert verify(one).returncode == 0
    everything = export(letters, "--job", "letters", to="all")
    assert len(list((everything / "lists" / oldruns.run_id(3)).iterdir())) == 3
    for shell_name in SHELLS:
        assert "130 records" in verify(everything, shell=shell_name).stdout
    lines = (everything / "records.jsonl").read_bytes().splitlines(keepends=True)
    for at in (0, 7, 8, 99, 129):
        changed = [*lines[:at], lines[at].replace(b'"case"', b'"cose"'), *lines[at + 1 :]]
        (everything / "records.jsonl").write_bytes(b"".join(changed))
        renewed(everything)
        number = json.loads(lines[at])["seq"]
        for shell_name in SHELLS:
            told = verify(everything, shell=shell_name)
            assert (told.returncode, f"  {number:07d}\nThis bundle does not hold." in told.stdout) == (1, True)


def test_what_was_removed_lawfully_is_missing_and_told(letters: Shell) -> None:
    letters("redact", "--run", "1", "--seq", "3", "--reason", "article 17")
    made = export(letters, "--case", "HB-2")
    assert len((made / "records.jsonl").read_bytes().splitlines()) == 3
    assert '"kind":"redact"' in (made / "entries.jsonl").read_text()
    assert verify(made).returncode == 0


def test_a_case_that_was_redacted_whole_is_exported_without_its_name(letters: Shell) -> None:
    letters("redact", "HB-4", "--reason", "article 17")
    made = export(letters, "--case", "HB-4")
    assert (made / "records.jsonl").read_text() == ""
    assert "lawfully removed by entry 6" in (made / "explanation.txt").read_text()
    assert verify(made).returncode == 0
    [(last,)] = rows(letters, "SELECT max(seq) FROM ledger")
    assert entry(letters, last)["about"] == entry(letters, 6)["about"]


def test_what_was_kept_at_a_prune_is_proved_by_its_old_checkpoint(letters: Shell) -> None:
    letters("hold", "--case", "HB-2", "--reason", "court")
    checkpoint(letters, "2025-01-06T00:00:00Z")
    record(letters, 3, "2026-11-01T02:00:00Z", both("HB-9"))
    assert letters("prune", "--keep", "400d", "--reason", "policy").returncode == 0
    made = export(letters, "--case", "HB-2")
    assert len((made / "records.jsonl").read_bytes().splitlines()) == 4
    assert verify(made).returncode == 0


def test_a_run_that_is_not_over_is_exported_as_far_as_the_ledger_names_it(letters: Shell) -> None:
    lines = both(*(f"N-{n}" for n in range(600)), "N-1")
    record(letters, 3, "2025-01-05T02:00:00Z", lines, end=False)
    made = export(letters, "--case", "N-1")
    assert "2 records" in verify(made).stdout
    assert "Not here: 2 records that no entry of the ledger names yet." in (made / "README").read_text()


def rule_file(shell: Shell) -> Path:
    path = shell.directory / "rule.txt"
    path.write_text(RULE)
    return path


def test_a_text_that_the_record_names_can_be_added(letters: Shell) -> None:
    made = export(letters, "--case", "HB-2", "--with", str(rule_file(letters)))
    name = hashlib.sha256(RULE.encode()).hexdigest()
    assert (made / "texts" / name).read_text() == RULE
    assert verify(made).returncode == 0
    (made / "texts" / name).write_text("Anybody is written to twice.\n")
    renewed(made)
    assert f"texts/{name}: the record names no such text" in verify(made).stdout


def test_a_page_loads_and_runs_nothing(letters: Shell) -> None:
    record(letters, 3, "2025-01-05T02:00:00Z", intent("<script>alert(1)</script>", reason="<b>\x1b[31m"))
    page = (export(letters, "--case", "<script>alert(1)</script>") / "explanation.html").read_text()
    assert "<script" not in page
    assert "<b>" not in page
    assert "\x1b" not in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "x"], "export: either --case ID or --job JOB"),
        (["--case", "a", "--job", "letters", "-o", "x"], "export: either --case ID or --job JOB"),
        (["--case", "HB-2"], "export: -o PATH is needed: where is it to be?"),
        (["--case", "HB-2", "--since", "1d", "-o", "x"], "export: --since and --until go with --job"),
        (
            ["--job", "letters", "--since", "2025-02-02", "--until", "2025-02-01", "-o", "x"],
            "export: --since (2025-02-02T00:00:00Z) is not before --until (2025-02-01T00:00:00Z)",
        ),
        (["--case", "HB-99", "-o", "x"], "export: nothing is on record of case HB-99"),
        (["--job", "lettres", "-o", "x"], "export: no job 'lettres' on record; did you mean letters?"),
        (["--case", "HB-2", "--with", "nothing", "-o", "x"], "export: --with: nothing: No such file or directory"),
    ],
)
def test_what_is_refused_leaves_nothing(letters: Shell, arguments: list[str], said: str) -> None:
    before = sorted(os.listdir(letters.directory))
    told = letters("export", *arguments)
    assert (told.returncode, told.stdout, told.stderr) == (2, "", f"runguard: {said}\n")
    assert sorted(os.listdir(letters.directory)) == before


def test_a_text_that_the_record_does_not_name_is_refused(letters: Shell) -> None:
    other = letters.directory / "other"
    other.write_text("Everybody\n")
    told = letters("export", "--case", "HB-2", "--with", str(other), "-o", "x")
    assert (told.returncode, "the record names no text with SHA-256" in told.stderr) == (2, True)
    assert not (letters.directory / "x").exists()


@pytest.mark.parametrize("name", ["there", "there.tar.gz"])
def test_nothing_is_overwritten(letters: Shell, name: str) -> None:
    (letters.directory / name).write_text("mine")
    told = letters("export", "--case", "HB-2", "-o", name)
    assert told.returncode == 2
    assert told.stderr == f"runguard: export: {letters.directory}/{name} exists: nothing is overwritten; name another\n"
    assert (letters.directory / name).read_text() == "mine"


@pytest.mark.parametrize("name", ["bundle", "bundle.tar.gz"])
def test_a_full_disk_leaves_nothing_half_done(letters: Shell, small_disk: Path, name: str) -> None:
    record(letters, 3, "2025-01-05T02:00:00Z", both(*(f"N-{n}" for n in range(1900))))
    told = letters("export", "--job", "letters", "-o", str(small_disk / name))
    assert (told.returncode, "No space left on device; nothing was written" in told.stderr) == (74, True)
    assert os.listdir(small_disk) == []


def test_a_line_without_its_end_is_no_way_around_it(letters: Shell) -> None:
    made = export(letters, "--case", "HB-2")
    for name in ("entries.jsonl", "records.jsonl", "checkpoints.jsonl"):
        data = (made / name).read_bytes()
        (made / name).write_bytes(
            data + data.splitlines()[0].replace(b"letters", b"leaflets").replace(b"HB-2", b"HB-3")[:-2]
        )
        renewed(made)
        assert f"WRONG  {name}" in verify(made).stdout
        (made / name).write_bytes(data)
