"""Where the state is kept, and when that place is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runguard import paths
from runguard.errors import UnsafeError

UID = os.geteuid()


def test_the_variable_names_the_directory() -> None:
    assert paths.state_directory({"RUNGUARD_STATE_DIR": "/srv/rg/"}) == "/srv/rg"


@pytest.mark.skipif(UID != 0, reason="says what root gets")
def test_root_has_var_lib() -> None:
    assert paths.state_directory({"XDG_STATE_HOME": "/x", "HOME": "/home/ann"}) == "/var/lib/runguard"


@pytest.mark.skipif(UID == 0, reason="says what others get")
@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"XDG_STATE_HOME": "/x", "HOME": "/home/ann"}, "/x/runguard"),
        ({"XDG_STATE_HOME": "", "HOME": "/home/ann"}, "/home/ann/.local/state/runguard"),
        ({"HOME": "/home/ann"}, "/home/ann/.local/state/runguard"),
    ],
)
def test_others_have_the_xdg_directory(environ: dict[str, str], path: str) -> None:
    assert paths.state_directory(environ) == path


@pytest.mark.parametrize(("given", "why"), [("", "is empty"), ("state", "is 'state'"), ("./x", "is './x'")])
def test_a_directory_that_depends_on_the_working_directory_is_refused(given: str, why: str) -> None:
    with pytest.raises(UnsafeError) as caught:
        paths.state_directory({"RUNGUARD_STATE_DIR": given})
    assert str(caught.value) == f"RUNGUARD_STATE_DIR {why}: it must be an absolute path (uid {UID})"


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_it_is_created_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        paths.prepare(str(tmp_path / "a" / "b"))
    finally:
        os.umask(before)
    assert oct((tmp_path / "a" / "b").stat().st_mode) == "0o40700"
    assert oct((tmp_path / "a").stat().st_mode) == "0o40700"


def test_an_existing_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "rg").mkdir(mode=0o750)
    assert paths.prepare(str(tmp_path / "rg")) == f"{tmp_path}/rg"


def refusal(path: Path) -> str:
    with pytest.raises(UnsafeError) as caught:
        paths.prepare(str(path))
    assert caught.value.status == 78
    return str(caught.value)


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rg").symlink_to(tmp_path)
    assert refusal(tmp_path / "rg") == (
        f"state directory {tmp_path}/rg: it is a symbolic link (uid {UID}); nothing was started"
    )


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rg").write_text("")
    assert refusal(tmp_path / "rg") == (
        f"state directory {tmp_path}/rg: it is not a directory (uid {UID}); nothing was started"
    )


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_directory_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "rg").mkdir()
    (tmp_path / "rg").chmod(mode)
    assert refusal(tmp_path / "rg") == (
        f"state directory {tmp_path}/rg: others may write in it (mode {mode:04o}); chmod 700 it (uid {UID});"
        " nothing was started"
    )


@pytest.mark.skipif(UID != 0, reason="needs root to give a directory away")
def test_a_directory_of_another_account_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rg").mkdir()
    os.chown(tmp_path / "rg", 65534, 65534)
    assert refusal(tmp_path / "rg") == (
        f"state directory {tmp_path}/rg: it belongs to uid 65534 (uid {UID}); nothing was started"
    )


def test_a_place_where_nothing_can_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert refusal(tmp_path / "file" / "rg") == (
        f"state directory {tmp_path}/file/rg: Not a directory (uid {UID}); nothing was started"
    )


def test_the_default_store_lies_in_db_with_locks_and_run_files_beside_it() -> None:
    found = paths.places("/srv/rg", None)
    assert (found.store, found.locks, found.runs) == (
        "/srv/rg/db/runguard.sqlite", "/srv/rg/db/locks", "/srv/rg/db/runs"
    )  # fmt: skip


def test_two_names_of_a_store_share_its_locks_and_run_files(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    named = paths.places("/srv/rg", f"{tmp_path}/link/jobs.db")
    assert named.store == f"{tmp_path}/link/jobs.db"
    assert (named.locks, named.runs) == (f"{tmp_path}/real/locks", f"{tmp_path}/real/runs")
    assert (named.witness, named.spool) == ("/srv/rg/witness", "/srv/rg/spool")


def test_a_home_in_which_nothing_can_be_made_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    wanted = tmp_path / "home" / ".local" / "state" / "runguard"
    with pytest.raises(UnsafeError) as refusal:
        paths.prepare(str(wanted))
    assert str(refusal.value) == (
        f"state directory {wanted}: {tmp_path}/home/.local cannot be made: Not a directory; RUNGUARD_STATE_DIR names"
        f" another place (uid {UID}); nothing was started"
    )
