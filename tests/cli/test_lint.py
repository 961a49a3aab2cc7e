"""`lint` as it is typed: which table, how it is printed, and its exit status."""

from __future__ import annotations

import json
import os
from pathlib import Path

from crons import needs_debian, with_spool, with_tables
from shell import Shell

LONDON = ("--timezone", "Europe/London", "--daemon", "debian")


def table(shell: Shell, text: str, name: str = "tab") -> Path:
    path = shell.directory / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_a_table_without_hazards_is_zero(shell: Shell) -> None:
    path = table(shell, "0 12 * * * true\n")
    done = shell("lint", str(path), *LONDON)
    assert (done.stdout, done.stderr, done.returncode) == ("", "runguard: lint: no hazards in 1 line\n", 0)
    assert not shell.state.exists()


def test_a_hazard_is_told_with_its_line_what_happens_and_a_fix(shell: Shell) -> None:
    table(shell, "MAILTO=ops\n0 12 * * fri-sun true\n")
    done = shell("lint", "tab", *LONDON)
    assert done.returncode == 1
    assert done.stderr == "runguard: lint: 1 hazard in 1 line\n"
    assert done.stdout.splitlines() == [
        "tab:2: never-fires: '0 12 * * fri-sun': not what it seems",
        "    Debian's cron accepts it, and the day of week matches nothing: it never fires",
        "    fix: write '0 12 * * 0,5,6'",
    ]


def test_json_tells_the_same(shell: Shell) -> None:
    table(shell, "0 12 * * * nowhere | tee x\n")
    done = shell("lint", "tab", *LONDON, "--json")
    assert (done.stderr, done.returncode) == ("", 1)
    first, second = json.loads(done.stdout)
    assert list(first) == ["file", "line", "text", "hazard", "reason", "happens", "fix", "dates"]
    assert (first["file"], first["line"], first["text"]) == ("tab", 1, "0 12 * * * nowhere | tee x")
    assert [first["hazard"], second["hazard"]] == ["path", "pipeline"]
    assert first["reason"] == "nowhere is not in cron's PATH (/usr/bin:/bin)"


def test_the_table_of_system_names_users(shell: Shell) -> None:
    path = table(shell, "0 12 * * * root true\n", "cron.d/letters")
    path.chmod(0o644)
    assert shell("lint", str(path), *LONDON).returncode == int(os.geteuid() != 0)  # whose file it is counts there
    table(shell, "0 12 * * * nobdy true\n")
    done = shell("lint", "tab", "--system", *LONDON, "--format", "csv")
    assert "tab,1,0 12 * * * nobdy true,user," in done.stdout


def test_a_file_whose_lines_name_root_is_taken_for_one_of_the_system(shell: Shell) -> None:
    table(shell, "0 12 * * * root true\n")
    done = shell("lint", "tab", *LONDON)
    assert done.stderr.splitlines()[0] == (
        "runguard: tab: read as a system table, because its lines name users (--no-system: it is none)"
    )
    assert done.returncode == 0
    assert shell("lint", "tab", "--no-system", *LONDON).returncode == 1  # there is no program root


def test_mode_and_name_of_a_file_in_cron_d_are_judged(shell: Shell) -> None:
    path = table(shell, "0 12 * * * root true\n", "cron.d/letters.txt")
    path.chmod(0o666)
    done = shell("lint", str(path), *LONDON)
    told = [line.split(": ")[1] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert told == ["file-name", "file-mode", *(["file-owner"] if os.geteuid() else [])]


def test_jobs_that_take_longer_than_a_minute(shell: Shell, started: object, finished: object) -> None:
    pairs = [(started(at), finished(at, duration_s=90.0)) for at in (1, 2, 3)]  # type: ignore[operator]
    shell.write(*(entry for pair in pairs for entry in pair))
    table(shell, "* * * * * /usr/bin/runguard run -j letters -s '* * * * *' -z Europe/London -- true\n")
    done = shell("lint", "tab", *LONDON)
    assert "tab:1: overruns: 3 of its last 3 runs took longer than the 60 s between starts" in done.stdout


def test_hostile_bytes_of_a_table_reach_no_terminal(shell: Shell) -> None:
    (shell.directory / "tab").write_bytes(b"0 12 * * * nowhere\x1b]2;x\xff\n")
    shown = shell("lint", "tab", *LONDON).stdout
    assert "\x1b" not in shown
    assert "nowhere\\x1b]2 is not in" in shown


@needs_debian
def test_all_tables_of_the_host(shell: Shell) -> None:
    for name in ("cron.d", "spool"):
        (shell.directory / "etc" / name).mkdir(parents=True)
    tables = {
        "crontab": "0 12 * * * root false | true\n",
        "cron.d/a": "0 12 * * fri-sun root true\n",
        "cron.d/b.c": "",
        "cron.d/d": "*/30 12 * * 1 nobody nowhere\n",
        "cron.d/a.dpkg-old": "nonsense",
        "cron.d/a.20261129T120000Z~": "0 12 * * * root false | true\n",
        "cron.d/.placeholder": "#",
        "spool/nobody": "0 12 * * * nowhere\n",
    }
    for name, text in tables.items():
        table(shell, text, f"etc/{name}").chmod(0o644)
    (shell.directory / "etc/cron.d/unread").symlink_to("/nowhere")
    shell.prefix = with_tables(shell.directory / "etc")
    done = shell("lint", "--all", *LONDON)
    told = [line.partition(": '")[0] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert [each.split(": ")[:2] for each in told] == [
        ["/etc/crontab:1", "pipeline"],
        ["/etc/cron.d/a:1", "never-fires"],
        ["/etc/cron.d/b.c", "file-name"],
        ["/etc/cron.d/d:1", "path"],
        ["crontab of nobody:1", "path"],
        ["crontab of nobody:1", "duplicate"],
    ]
    assert told[-1].endswith("duplicate: /etc/cron.d/d:1 has the same command, and fires at the same minutes")
    assert done.stderr.splitlines() == [
        "runguard: /etc/cron.d/unread: No such file or directory", "runguard: lint: 6 hazards in 4 lines"
    ]  # fmt: skip


@needs_debian
def test_what_an_account_may_not_read_of_all_tables_is_said(nobodys: Shell) -> None:
    shell = nobodys
    for name in ("cron.d", "spool"):
        (shell.directory / "etc" / name).mkdir(parents=True)
    table(shell, "", "etc/crontab").chmod(0o644)
    table(shell, "0 12 * * * root true\n", "etc/cron.d/secret").chmod(0o600)
    shell.prefix = (*with_tables(shell.directory / "etc"), *shell.prefix)
    done = shell("lint", "--all", *LONDON)
    assert done.stderr.splitlines() == [
        "runguard: /etc/cron.d/secret: Permission denied",
        "runguard: lint: the tables of other users are root's to read",
        "runguard: lint: no hazards in 0 lines",
    ]
    assert done.returncode == 2


@needs_debian
def test_the_table_of_a_user(shell: Shell) -> None:
    spool = shell.directory / "spool"
    spool.mkdir()
    (spool / "nobody").write_text("0 12 * * fri-sun true\n")
    shell.prefix = tuple(with_spool(spool))
    done = shell("lint", "--user", "nobody", *LONDON)
    assert done.stdout.splitlines()[0].startswith("crontab of nobody:1: never-fires: ")
