"""Which directories are private, and how they are made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runguard import private

UID = os.geteuid()


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o500])
def test_a_directory_of_ours_in_which_only_we_may_write_is_private(tmp_path: Path, mode: int) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(mode)
    assert private.flaw(str(tmp_path / "d")) == ""


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o720, 0o1777])
def test_one_in_which_others_may_write_is_not(tmp_path: Path, mode: int) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(mode)
    assert private.flaw(str(tmp_path / "d")) == f"others may write in it (mode {mode:04o}); chmod 700 it"


def test_a_link_to_a_private_directory_is_not_private(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir(0o700)
    (tmp_path / "link").symlink_to("d")
    assert private.flaw(str(tmp_path / "link")) == "it is a symbolic link"


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("")
    assert private.make(str(tmp_path / "d")) == "it is not a directory"


@pytest.mark.skipif(UID != 0, reason="needs root to give a directory away")
def test_it_belongs_to_us_or_to_whom_it_should(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir(0o700)
    os.chown(tmp_path / "d", 65534, 65534)
    assert private.flaw(str(tmp_path / "d")) == "it belongs to uid 65534"
    assert private.flaw(str(tmp_path / "d"), 65534) == ""


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_a_missing_one_is_made_0700_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        assert private.make(str(tmp_path / "d")) == ""
    finally:
        os.umask(before)
    assert oct((tmp_path / "d").stat().st_mode) == "0o40700"


def test_an_existing_one_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir(0o750)
    assert private.make(str(tmp_path / "d")) == ""
    assert oct((tmp_path / "d").stat().st_mode) == "0o40750"
