"""The ledger's checkpoints: due once a day and every 10,000 entries, signed with a key, told outside."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runguard.evidence import checkpoints, signing
from runguard.instant import from_rfc3339
from shell import Shell

ID = "3f0c12ab-0000-4000-8000-00000000000"
DAY = "2026-03-0{}T12:00:00Z"
ENVIRON = {"PATH": "/usr/bin:/bin"}

with_ssh = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs ssh-keygen")


def refusal(n: int) -> dict[str, Any]:
    return {
        "run_id": f"{ID[:-5]}{n:06}", "number": n, "job": "letters", "revision": None, "window": None, "why": "overlap",
        "returned": 75, "trigger": "schedule", "reason": None, "remarks": [],
    }  # fmt: skip


def make(shell: Shell, at: str) -> list[checkpoints.Made]:
    with shell.open() as store, store.write() as tx:
        return checkpoints.make(tx, from_rfc3339(at))


def test_a_list_is_in_the_format_of_sha256sum() -> None:
    digests = [hashlib.sha256(b"a\n").hexdigest(), hashlib.sha256(b"b\n").hexdigest()]
    assert checkpoints.entry_list(9, digests) == (
        b"87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7  e0000000009\n"
        b"0263829989b6fd954f72baaf2fc64bc2e2f01d692d4de72986ea808f6e99813f  e0000000010\n"
    )


def test_a_ledger_without_an_entry_wants_none(shell: Shell) -> None:
    assert make(shell, DAY.format(1)) == []


def test_the_first_is_due_a_day_after_the_first_start(shell: Shell) -> None:
    shell.write(("run.refused", DAY.format(1), refusal(1)))
    assert make(shell, "2026-03-02T11:59:59Z") == []
    (made,) = make(shell, DAY.format(2))
    assert b'"kind":"checkpoint"' in made.line
    assert b'"first":1,"last":1,"count":1' in made.line
    assert b'"previous":null' in made.line


def test_the_next_is_due_a_day_later_names_the_one_before_and_covers_it(shell: Shell) -> None:
    shell.write(("run.refused", DAY.format(1), refusal(1)))
    (first,) = make(shell, DAY.format(2))
    assert make(shell, "2026-03-03T11:00:00Z") == []
    (second,) = make(shell, DAY.format(3))
    assert b'"first":2,"last":2,"count":1' in second.line
    previous = hashlib.sha256(first.line).hexdigest().encode()
    assert b'"previous":{"seq":2,"sha256":"' + previous + b'"}' in second.line


def test_its_list_hashes_exactly_the_lines_that_it_names(shell: Shell) -> None:
    shell.write(("run.refused", DAY.format(1), refusal(1)), ("run.refused", DAY.format(1), refusal(2)))
    (made,) = make(shell, DAY.format(2))
    with shell.open() as store:
        lines = [line for _, line in store.rows("lines_after", seq=0, page=2)]
    listed = "".join(f"{hashlib.sha256(line).hexdigest()}  e000000000{n}\n" for n, line in enumerate(lines, 1))
    assert hashlib.sha256(listed.encode()).hexdigest().encode() in made.line


def test_many_entries_are_cut_into_pieces_of_ten_thousand(shell: Shell) -> None:
    at_us = from_rfc3339(DAY.format(1))
    with shell.open() as store, store.write() as tx:
        for n in range(1, 20_003):
            tx.append("run.refused", at_us, refusal(n))
        made = checkpoints.make(tx, at_us + 1)
    spans = [(b'"first":1,"last":10000,' in made[0].line), (b'"first":10001,"last":20000,' in made[1].line)]
    assert (len(made), spans) == (2, [True, True])


@with_ssh
def test_a_signature_is_that_of_the_line_by_the_key(tmp_path: Path) -> None:
    for name in ("ours", "another"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    text = signing.sign(str(tmp_path / "ours"), b"line\n", ENVIRON)
    ours, another = (signing.public_key(str(tmp_path / name), ENVIRON) for name in ("ours", "another"))
    assert signing.flaw(b"line\n", text, ours, ENVIRON) == ""
    assert signing.flaw(b"line\n", text, None, ENVIRON) == ""
    assert signing.flaw(b"other\n", text, ours, ENVIRON)
    assert signing.flaw(b"line\n", text, another, ENVIRON)
    assert signing.flaw(b"line\n", "no signature", ours, ENVIRON)


@with_ssh
def test_a_key_with_a_passphrase_is_named_and_asks_nobody(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(tmp_path / "key")], check=True)
    with pytest.raises(ValueError, match="ssh-keygen: "):
        signing.sign(str(tmp_path / "key"), b"line\n", ENVIRON)


@with_ssh
def test_a_run_makes_the_checkpoint_that_is_due_signs_it_and_tells_it_outside(shell: Shell) -> None:
    key = shell.directory / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    shell.config.write_text(f'sign_key = "{key}"\nanchor = "cat > {shell.directory}/anchored"\n')
    shell.write(("run.refused", DAY.format(1), refusal(1)))
    done = shell("run", "-j", "x", "--", "true")
    assert (done.returncode, done.stderr) == (0, "")
    with shell.open() as store:
        ((seq, line),) = store.rows("last_checkpoint")
        ((text,),) = store.rows("signature", seq=seq)
    assert signing.flaw(line, text, signing.public_key(str(key), ENVIRON), ENVIRON) == ""
    digest = hashlib.sha256(line).hexdigest()
    assert (shell.directory / "anchored").read_text().endswith(f" {seq}:{digest}\n")
    shell("run", "-j", "x", "--", "true")
    with shell.open() as store:
        assert store.rows("last_checkpoint") == [(seq, line)]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ('anchor = "echo no such host >&2; exit 3"\n', "was not anchored: status 3: no such host"),
        ('sign_key = "/absent/key"\n', "is not signed: ssh-keygen: "),
    ],
)
def test_what_goes_wrong_with_a_checkpoint_is_said_and_does_not_touch_the_job(
    shell: Shell, config: str, said: str
) -> None:
    shell.config.write_text(config)
    shell.write(("run.refused", DAY.format(1), refusal(1)))
    done = shell("run", "-j", "x", "--", "sh", "-c", "exit 7")
    assert done.returncode == 7
    assert said in done.stderr
