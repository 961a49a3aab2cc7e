"""Configuration files: found, read, and remembered as they last parsed."""

from __future__ import annotations

import hashlib
import marshal
import os
import time
from pathlib import Path

import pytest

from runguard import config
from runguard.config.files import File, sources


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runguard.toml"


def load(file: Path, state: Path | None = None) -> File:
    environ = {"RUNGUARD_CONFIG": str(file), "HOME": "/nonexistent"}
    (found,) = config.load(environ, str(state) if state else None).files
    return found


def write(file: Path, text: str) -> None:
    """Write the file, and come back when a cache of it would be trusted."""
    file.write_text(text)
    time.sleep(0.015)


def cache_of(state: Path) -> Path:
    (path,) = (state / "cache").iterdir()
    return path


def remembered(cached: Path) -> tuple[object, ...]:
    entry: tuple[object, ...] = marshal.loads(cached.read_bytes()[64:])
    return entry


def plant(cached: Path, entry: object) -> None:
    content = marshal.dumps(entry)  # type: ignore[arg-type]
    cached.write_bytes(hashlib.sha256(content).hexdigest().encode() + content)


def test_the_users_file_is_stronger_than_the_systems() -> None:
    assert sources({"HOME": "/home/ann"}) == [
        ("/home/ann/.config/runguard/runguard.toml", False),
        ("/etc/runguard/runguard.toml", False),
    ]


def test_a_relative_xdg_directory_is_ignored() -> None:
    assert sources({"HOME": "/home/ann", "XDG_CONFIG_HOME": "conf"})[0][0] == "/home/ann/.config/runguard/runguard.toml"


def test_xdg_names_the_users_directory() -> None:
    assert sources({"HOME": "/home/ann", "XDG_CONFIG_HOME": "/x"})[0][0] == "/x/runguard/runguard.toml"


def test_runguard_config_replaces_both() -> None:
    assert sources({"HOME": "/home/ann", "RUNGUARD_CONFIG": "/srv/rg.toml"}) == [("/srv/rg.toml", True)]


def test_files_that_do_not_exist_are_no_problem(tmp_path: Path) -> None:
    assert config.load({"HOME": str(tmp_path)}, None, system_file=str(tmp_path / "none")).files == ()


def test_a_missing_file_that_was_named_is_a_problem(file: Path) -> None:
    found = load(file)
    assert found == (
        str(file),
        {},
        f"{file}: No such file or directory (RUNGUARD_CONFIG names it); going on without this file",
    )


def test_an_empty_variable_is_a_problem() -> None:
    (found,) = config.load({"RUNGUARD_CONFIG": ""}, None).files
    assert found.fault == "RUNGUARD_CONFIG is empty; going on without this file"


def test_dev_null_says_nothing() -> None:
    assert load(Path("/dev/null")) == ("/dev/null", {}, "")


def test_a_fifo_is_not_waited_for(file: Path) -> None:
    os.mkfifo(file)
    assert load(file).fault == f"{file}: not a regular file; going on without this file"


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    assert load(tmp_path).fault == f"{tmp_path}: not a regular file; going on without this file"


def test_a_file_of_more_than_a_mebibyte_is_not_read(file: Path) -> None:
    file.write_bytes(b"#" * ((1 << 20) + 1))
    assert load(file).fault == f"{file}: larger than 1 MiB; going on without this file"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"timeout = \n", "1: invalid value"),
        (b"a = 1\nb = [\n", "2: invalid value"),
        (b"a = 1\n\xff = 2\n", "2: a byte that is no UTF-8"),
        (b"a = 1\na = 2\n", "2: cannot overwrite a value"),
        (b"[jobs.x]\n[jobs.x]\n", "2: cannot declare ('jobs', 'x') twice"),
    ],
)
def test_text_that_is_no_toml_is_told_with_its_line(file: Path, content: bytes, fault: str) -> None:
    file.write_bytes(content)
    assert load(file).fault == f"{file}:{fault}; going on without this file"


def test_deep_nesting_is_a_problem_and_no_crash(file: Path) -> None:
    file.write_text("a = " + "[" * 20_000 + "]" * 20_000)
    assert load(file).fault == f"{file}: nested too deeply; going on without this file"


def test_a_second_read_comes_from_the_cache(file: Path, tmp_path: Path) -> None:
    write(file, "early = 7\n")
    load(file, tmp_path)
    cached = cache_of(tmp_path)
    form, identity, _, fault = remembered(cached)
    plant(cached, (form, identity, {"early": 8}, fault))
    assert load(file, tmp_path).data == {"early": 8}


def test_a_changed_file_is_read_again(file: Path, tmp_path: Path) -> None:
    write(file, "early = 7\n")
    load(file, tmp_path)
    write(file, "early = 9\n")
    assert load(file, tmp_path).data == {"early": 9}


def test_a_cache_as_young_as_the_file_is_not_trusted(file: Path, tmp_path: Path) -> None:
    write(file, "early = 7\n")
    load(file, tmp_path)
    cached = cache_of(tmp_path)
    form, identity, _, fault = remembered(cached)
    plant(cached, (form, identity, {"early": 8}, fault))
    os.utime(cached, ns=(file.stat().st_ctime_ns, file.stat().st_ctime_ns))
    assert load(file, tmp_path).data == {"early": 7}


def test_a_broken_file_is_replaced_by_its_last_good_parse(file: Path, tmp_path: Path) -> None:
    write(file, "early = 7\n")
    load(file, tmp_path)
    write(file, "early = \n")
    expected = (str(file), {"early": 7}, f"{file}:1: invalid value; going on with what it last said")
    assert load(file, tmp_path) == expected  # parsed, and failed
    assert load(file, tmp_path) == expected  # remembered as failed


def test_a_vanished_file_is_replaced_by_its_last_good_parse(file: Path, tmp_path: Path) -> None:
    write(file, "early = 7\n")
    load(file, tmp_path)
    file.unlink()
    assert load(file, tmp_path).data == {"early": 7}


def test_a_mended_file_is_read(file: Path, tmp_path: Path) -> None:
    write(file, "early = \n")
    load(file, tmp_path)
    write(file, "early = 3\n")
    assert load(file, tmp_path) == (str(file), {"early": 3}, "")


def test_the_cache_is_private_whatever_the_umask(file: Path, tmp_path: Path) -> None:
    write(file, "early = 7\n")
    before = os.umask(0)
    try:
        load(file, tmp_path)
    finally:
        os.umask(before)
    assert oct((tmp_path / "cache").stat().st_mode) == "0o40700"
    assert oct(cache_of(tmp_path).stat().st_mode) == "0o100600"


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_cache_that_others_may_write_is_not_trusted(file: Path, tmp_path: Path, mode: int) -> None:
    write(file, "early = 7\n")
    load(file, tmp_path)
    cached = cache_of(tmp_path)
    form, identity, _, fault = remembered(cached)
    plant(cached, (form, identity, {"early": 8}, fault))
    cached.chmod(mode)
    assert load(file, tmp_path).data == {"early": 7}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")
def test_a_cache_of_another_account_is_not_trusted(file: Path, tmp_path: Path) -> None:
    write(file, "early = 7\n")
    load(file, tmp_path)
    cached = cache_of(tmp_path)
    form, identity, _, fault = remembered(cached)
    plant(cached, (form, identity, {"early": 8}, fault))
    os.chown(cached, 65534, 65534)
    assert load(file, tmp_path).data == {"early": 7}


@pytest.mark.parametrize("entry", [5, ("other", (), {}, ""), ("other", 5, {}, ""), ("other",), None])
def test_a_cache_that_makes_no_sense_is_a_miss(file: Path, tmp_path: Path, entry: object) -> None:
    write(file, "early = 7\n")
    load(file, tmp_path)
    plant(cache_of(tmp_path), entry)
    assert load(file, tmp_path).data == {"early": 7}


def test_a_damaged_cache_is_a_miss(file: Path, tmp_path: Path) -> None:
    write(file, "early = 7\n")
    load(file, tmp_path)
    content = cache_of(tmp_path).read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x5A
        cache_of(tmp_path).write_bytes(damaged)
        assert load(file, tmp_path) == File(str(file), {"early": 7})
    for length in range(len(content)):
        cache_of(tmp_path).write_bytes(content[:length])
        assert load(file, tmp_path) == File(str(file), {"early": 7})


def test_a_relative_name_never_means_another_directorys_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "rg.toml").write_text("early = 7\n")
    (tmp_path / "two" / "rg.toml").write_text("early = \n")
    monkeypatch.chdir(tmp_path / "one")
    assert load(Path("rg.toml"), tmp_path).data == {"early": 7}
    monkeypatch.chdir(tmp_path / "two")
    assert load(Path("rg.toml"), tmp_path) == File(
        "rg.toml", {}, "rg.toml:1: invalid value; going on without this file"
    )


def test_in_a_deleted_directory_a_relative_name_is_only_a_missing_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert load(Path("rg.toml"), tmp_path).data == {}


def test_the_cache_is_read_without_being_written_where_nothing_may_be(file: Path, tmp_path: Path) -> None:
    environ = {"RUNGUARD_CONFIG": str(file), "HOME": "/nonexistent"}
    write(file, "early = 7\n")
    config.load(environ, str(tmp_path), remember=False)
    assert not (tmp_path / "cache").exists()
    load(file, tmp_path)
    file.write_text("early =\n")
    (found,) = config.load(environ, str(tmp_path), remember=False).files
    assert found.data == {"early": 7}


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_cache_directory_that_others_may_write_is_told_and_not_used(file: Path, tmp_path: Path, mode: int) -> None:
    write(file, "early = 7\n")
    load(file, tmp_path)
    form, identity, _, fault = remembered(cache_of(tmp_path))
    plant(cache_of(tmp_path), (form, identity, {"early": 8}, fault))
    (tmp_path / "cache").chmod(mode)
    loaded = config.load({"RUNGUARD_CONFIG": str(file), "HOME": "/nonexistent"}, str(tmp_path))
    assert loaded.files[0].data == {"early": 7}
    assert loaded.remark == (
        f"{tmp_path}/cache: others may write in it (mode {mode:04o}); chmod 700 it (uid {os.geteuid()});"
        " the configuration is read without its cache"
    )


def test_a_linked_cache_is_not_followed(file: Path, tmp_path: Path) -> None:
    write(file, "early = 7\n")
    load(file, tmp_path)
    cached = cache_of(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    form, identity, _, fault = remembered(cached)
    plant(elsewhere, (form, identity, {"early": 8}, fault))
    cached.unlink()
    cached.symlink_to(elsewhere)
    assert load(file, tmp_path).data == {"early": 7}


def test_without_a_place_for_the_cache_the_file_is_read_all_the_same(file: Path) -> None:
    write(file, "early = 7\n")
    assert load(file, Path("/proc/nowhere")).data == {"early": 7}
    assert load(file).data == {"early": 7}


def test_a_cache_of_another_version_is_a_miss(file: Path, tmp_path: Path) -> None:
    write(file, "early = 7\n")
    load(file, tmp_path)
    cached = cache_of(tmp_path)
    _, identity, _, fault = remembered(cached)
    plant(cached, ("1 0.0.9 4", identity, {"early": 8}, fault))
    assert load(file, tmp_path).data == {"early": 7}


def test_dates_become_text(file: Path) -> None:
    file.write_text("schedule = 2026-03-29\n")
    assert load(file).data == {"schedule": "2026-03-29"}
