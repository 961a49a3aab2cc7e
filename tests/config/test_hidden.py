"""Addresses are not in the cache of a configuration file, and are found again where they stand."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from runguard import config
from runguard.config.files import File

KEY = "0b1cfa3e-64a7-4c15-a1a6-62ac15ad21a5"
TEXT = f"""
ping = "https://hc-ping.com/{KEY}"  # of all
[jobs.x]  # é
ping = 'file:/etc/url'
ping_fail_url = 'https://m.example/{KEY}/{{exit}}'
store = "postgresql://ann:{KEY}@db/runguard"
command = "curl https://m.example/public"
"""
SAID = {
    "ping": f"https://hc-ping.com/{KEY}",
    "jobs": {
        "x": {
            "ping": "file:/etc/url",
            "ping_fail_url": f"https://m.example/{KEY}/{{exit}}",
            "store": f"postgresql://ann:{KEY}@db/runguard",
            "command": "curl https://m.example/public",
        }
    },
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that was read, and read again from its cache."""
    path = tmp_path / "runguard.toml"
    path.write_text(TEXT)
    time.sleep(0.015)  # a cache as young as its file is not trusted
    assert load(path) == (str(path), SAID, "")
    return path


def load(path: Path) -> File:
    (found,) = config.load({"RUNGUARD_CONFIG": str(path), "HOME": "/nonexistent"}, str(path.parent)).files
    return found


def cached(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in (path.parent / "cache").iterdir())


def test_the_cache_has_no_address_and_says_all_the_same(file: Path) -> None:
    assert b"public" in cached(file)
    assert KEY.encode() not in cached(file)
    assert load(file) == (str(file), SAID, "")


def test_the_key_of_an_api_is_left_out_of_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "runguard.toml"
    path.write_text(f'ping_api_key = "{KEY}"\n[jobs.x]\nping_api_key = "{KEY}"\ntimeout = 5\n')
    time.sleep(0.015)
    load(path)
    assert load(path).data == {"jobs": {"x": {"timeout": 5}}}
    assert KEY.encode() not in cached(path)


def test_a_broken_file_goes_on_with_the_addresses_that_it_still_holds(file: Path) -> None:
    file.write_text(f'timeout = \n"{TEXT}')
    found = load(file)
    assert found.data == SAID
    assert found.fault.endswith("; going on with what it last said")
    assert load(file) == found
    assert KEY.encode() not in cached(file)


def test_an_address_that_a_broken_file_no_longer_holds_is_left_out(file: Path) -> None:
    file.write_text(f"timeout = \nping_fail_url = 'https://m.example/{KEY}/{{exit}}'\n")
    found = load(file)
    assert found.fault.endswith("; going on with what it last said, but for addresses that it no longer holds")
    assert found.data == {
        "jobs": {
            "x": {
                "ping": "file:/etc/url",
                "ping_fail_url": f"https://m.example/{KEY}/{{exit}}",
                "command": "curl https://m.example/public",
            }
        }
    }


def test_an_address_with_escapes_is_read_and_never_remembered(tmp_path: Path) -> None:
    path = tmp_path / "runguard.toml"
    path.write_text(f'ping = "https\\u003a//hc-ping.com/{KEY}"\n')
    for _ in range(2):
        assert load(path).data == {"ping": f"https://hc-ping.com/{KEY}"}
    assert cached(path) == b""
