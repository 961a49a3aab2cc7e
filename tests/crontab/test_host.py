"""What this host says of its cron, asked of files that stand for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runguard.crontab import host
from runguard.crontab.daemons import BUSYBOX, CRONIE, DEBIAN


def program(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    path.chmod(0o755)
    return str(path)


def test_a_daemon_that_looks_for_cron_tz_obeys_it(tmp_path: Path) -> None:
    debian = program(tmp_path / "cron", b"\x7fELF SHELL MAILTO")
    cronie = program(tmp_path / "crond", b"\x7fELF SHELL MAILTO CRON_TZ")
    assert host.daemon((debian,)) == DEBIAN
    assert host.daemon((cronie,)) == CRONIE
    assert host.daemon(("/nowhere/cron", cronie)) == CRONIE


def test_a_crond_that_is_a_link_to_busybox_is_busybox(tmp_path: Path) -> None:
    program(tmp_path / "busybox", b"\x7fELF")
    (tmp_path / "crond").symlink_to("busybox")
    assert host.daemon((str(tmp_path / "crond"),)) == BUSYBOX


def test_a_host_without_a_daemon_has_none() -> None:
    assert host.daemon(("/nowhere/cron",)) is None


@pytest.mark.skipif(not os.path.exists("/usr/sbin/cron"), reason="needs Debian's cron")
def test_debians_cron_is_found_out() -> None:
    assert host.daemon() == DEBIAN


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("", None),
        ("# TZ=Asia/Tokyo\n", None),
        ("READ_ENV=yes\nTZ=Asia/Tokyo\n", "Asia/Tokyo"),
        ("export TZ='Europe/London'\n", "Europe/London"),
        ("TZ=:Europe/London\n", "Europe/London"),
        ("TZ=\n", None),
    ],
)
def test_the_zone_that_the_daemon_is_started_with(tmp_path: Path, text: str, zone: str | None) -> None:
    (tmp_path / "cron").write_text(text)
    assert host.zone_of_daemon((str(tmp_path / "cron"), "/nowhere/crond")) == zone


def test_why_a_job_would_not_find_a_program(tmp_path: Path) -> None:
    home = str(tmp_path)
    program(tmp_path / "mine", b"#!/bin/sh\n")
    (tmp_path / "text").write_text("")
    (tmp_path / "directory").mkdir()
    assert host.why_not_found("sh", "/usr/bin:/bin", home) == ""
    assert host.why_not_found("mine", f"/usr/bin:{home}", home) == ""
    assert host.why_not_found("./mine", "/usr/bin", home) == ""
    assert host.why_not_found(f"{home}/mine", "/usr/bin", home) == ""
    assert host.why_not_found("mine", "/usr/bin:/bin", home) == "mine is not in cron's PATH (/usr/bin:/bin)"
    assert host.why_not_found(f"{home}/text", "", home) == f"{home}/text cannot be executed"
    assert host.why_not_found(f"{home}/directory", "", home) == f"{home}/directory cannot be executed"
    assert host.why_not_found("bin/x", "", home) == f"bin/x does not exist in {home}, where cron starts its commands"


def test_accounts() -> None:
    assert host.is_account("root")
    assert not host.is_account("nobdy\0x")
    assert host.home_of("nobdy") == "/"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a file that another account may not reach")
def test_whether_an_account_may_start_a_program(tmp_path: Path) -> None:
    program = tmp_path / "runguard"
    program.write_text("#!/bin/sh\n")
    assert not host.may_start(str(program), None)
    program.chmod(0o755)
    assert [host.may_start(str(program), user) for user in (None, "root", "nobody")] == [True, True, False]
    assert [host.may_start("/bin/sh", user) for user in (None, "root", "nobody")] == [True, True, True]
