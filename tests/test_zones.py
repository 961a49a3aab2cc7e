"""Zone files of the host and of the tzdata package."""

from pathlib import Path

import pytest
import tzdata

from runguard import zones
from runguard.errors import ZoneError


def test_the_systems_files_come_first(tmp_path: Path) -> None:
    (tmp_path / "tzdata.zi").write_text("# version 2011z\n")
    (tmp_path / "Europe").mkdir()
    utc = Path(tzdata.__file__).parent / "zoneinfo" / "UTC"
    (tmp_path / "Europe" / "London").write_bytes(utc.read_bytes())
    data = zones.load("Europe/London", directories=(str(tmp_path),))
    assert data.tzdata == "2011z"
    assert data.zone.offset_at(1_719_800_000) == 0  # July 2024: London's own file would say 3600


def test_the_package_serves_where_the_system_has_no_file(tmp_path: Path) -> None:
    data = zones.load("Europe/London", directories=(str(tmp_path),))
    assert data.tzdata == tzdata.IANA_VERSION
    assert data.zone.offset_at(1_719_800_000) == 3600


def test_an_unknown_zone_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ZoneError) as refusal:
        zones.load("Europe/Lodnon")
    assert str(refusal.value) == "time zone 'Europe/Lodnon': not known on this host; did you mean Europe/London?"


@pytest.mark.parametrize(
    "name", ["", "../etc/passwd", "/etc/localtime", "Europe//London", "Europe/", "a\nb", "x" * 300, "é"]
)
def test_an_odd_name_never_reaches_the_file_system(name: str) -> None:
    with pytest.raises(ZoneError, match="a name such as Europe/London is wanted"):
        zones.load(name)


def test_the_hosts_zone_is_the_name_behind_etc_localtime(tmp_path: Path) -> None:
    (tmp_path / "zoneinfo" / "Europe").mkdir(parents=True)
    (tmp_path / "zoneinfo" / "Europe" / "Riga").touch()
    (tmp_path / "localtime").symlink_to(tmp_path / "zoneinfo" / "Europe" / "Riga")
    assert zones.host_zone_name(str(tmp_path)) == "Europe/Riga"


def test_a_host_without_etc_localtime_is_in_utc(tmp_path: Path) -> None:
    assert zones.host_zone_name(str(tmp_path)) == "UTC"


def test_a_copied_etc_localtime_has_no_name_and_is_read_itself(tmp_path: Path) -> None:
    london = Path(tzdata.__file__).parent / "zoneinfo" / "Europe" / "London"
    (tmp_path / "localtime").write_bytes(london.read_bytes())
    assert zones.host_zone_name(str(tmp_path)) == "localtime"
    assert zones.load("localtime", etc=str(tmp_path)).zone.offset_at(1_719_800_000) == 3600


def test_the_local_time_variable_is_not_the_daemons_zone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert zones.host_zone_name(str(tmp_path)) == "UTC"
