"""Every command but `run` refuses a configuration with a mistake, and says where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from runguard.config import strict
from runguard.errors import ConfigError


def load(tmp_path: Path, text: str) -> object:
    (tmp_path / "rg.toml").write_text(text)
    return strict.load({"RUNGUARD_CONFIG": str(tmp_path / "rg.toml")})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = \n", "rg.toml:1: invalid value"),
        ("\n[jobs.a]\ntiemout = 5\n", "rg.toml:3: jobs.a.tiemout: no such key; did you mean timeout?"),
        ("[jobs.a]\nstore = '/x'\n", "rg.toml:2: jobs.a.store: belongs at the top level of the file"),
        ("[jobs.'a b']\n", "rg.toml:1: 'a b' is no job name (letters, digits, '.', '_', '-'; a letter or digit first)"),
        ("[jobs.a]\ntimeout = 'x'\n[jobs.b]\nearly = 'y'\n",
         "rg.toml:2: jobs.a.timeout: 'x' is no duration (90s, 15m, 2h, 1h30m, 7d)"),
        ("[jobs.b]\nearly = 'y'\n", "rg.toml:2: jobs.b.early: 'y' is no duration (90s, 15m, 2h, 1h30m, 7d)"),
        ("store = 'x'\n", "rg.toml:1: store: 'x' is not an absolute path"),
        ("ping = ''\n", "rg.toml:1: ping: is empty"),
        ("jobs = []\n", "rg.toml:1: jobs: a table [jobs.NAME] for each job is wanted"),
        ("[jobs]\na = 1\n", "rg.toml:2: jobs.a: a table [jobs.a] is wanted"),
    ],
)  # fmt: skip
def test_mistakes(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert str(caught.value).replace(f"{tmp_path}/", "") == message.replace("1: 'a b'", "1: jobs.'a b': 'a b'")
    assert caught.value.status == 78


def test_the_error_carries_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, "\n\nxyzzy = 1\n")
    assert (caught.value.path, caught.value.line) == (f"{tmp_path}/rg.toml", 3)


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="/nowhere: No such file or directory"):
        strict.load({"RUNGUARD_CONFIG": "/nowhere"})


def test_a_file_without_mistakes_is_loaded(tmp_path: Path) -> None:
    (file,) = load(tmp_path, "early = 3\nping = 'file:/nonexistent'\n[jobs.a]\ntimeout = '5m'\n").files  # type: ignore[attr-defined]
    assert file.data == {"early": 3, "ping": "file:/nonexistent", "jobs": {"a": {"timeout": "5m"}}}
