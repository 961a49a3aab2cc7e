"""`wrap` and `unwrap` as they are typed: the diff, the file that is written, and what is refused."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from crons import needs_debian, with_tables
from oldruns import can_trace
from shell import Shell

RG = ("--runguard", "/opt/rg/bin/runguard", "--daemon", "debian")
TABLE = "MAILTO=ops\n\n30 2 * * *  /opt/letters/send --all\n# note\n*/5 * * * *\tcd /srv && ./poll%in"
WRAPPED = (
    "MAILTO=ops\n\n30 2 * * *  /opt/rg/bin/runguard run --job send --schedule '30 2 * * *' -- /opt/letters/send --all\n"
    "# note\n*/5 * * * *\t/opt/rg/bin/runguard run --job poll --schedule '*/5 * * * *' -c 'cd /srv && ./poll'%in"
)


@pytest.fixture
def table(shell: Shell) -> Path:
    path = shell.directory / "tab"
    path.write_text(TABLE)
    path.chmod(0o640)
    return path


def backups(table: Path) -> list[Path]:
    return sorted(path for path in table.parent.iterdir() if path.name.startswith(("tab.", ".tab")))


def test_without_apply_a_diff_is_shown_that_patch_takes(shell: Shell, table: Path) -> None:
    done = shell("wrap", "tab", *RG)
    assert (done.returncode, done.stderr) == (
        0, "runguard: wrap: 2 lines would be guarded; runguard wrap tab --apply writes it\n"
    )  # fmt: skip
    assert done.stdout.startswith(
        "--- tab\n+++ tab\n@@ -1,5 +1,5 @@\n MAILTO=ops\n \n-30 2 * * *  /opt/letters/send --all\n"
    )
    assert done.stdout.endswith("%in\n\\ No newline at end of file\n")
    assert table.read_text() == TABLE
    assert not shell.state.exists()
    if shutil.which("patch"):
        subprocess.run(["patch", "-s", "tab"], input=done.stdout, text=True, cwd=shell.directory, check=True)
        assert table.read_text() == WRAPPED


def test_apply_writes_the_table_and_keeps_a_copy(shell: Shell, table: Path) -> None:
    before = table.stat()
    done = shell("wrap", "tab", *RG, "--apply")
    [copy] = backups(table)
    assert re.fullmatch(r"tab\.\d{8}T\d{6}Z~", copy.name)
    assert (done.stdout, done.stderr, done.returncode) == (f"tab: 2 lines guarded; as it was: {copy}\n", "", 0)
    assert (table.read_text(), copy.read_text()) == (WRAPPED, TABLE)
    after = table.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert after.st_ino != before.st_ino  # replaced whole


def test_unwrap_restores_it(shell: Shell, table: Path) -> None:
    shell("wrap", "tab", *RG, "--apply")
    assert shell("unwrap", "tab").stdout.count("\n+") == 3
    done = shell("unwrap", "tab", "--apply")
    assert done.stdout.startswith("tab: 2 lines bared; as it was: ")
    assert table.read_text() == TABLE
    assert len(backups(table)) == 2


def test_wrapping_twice_changes_nothing(shell: Shell, table: Path) -> None:
    shell("wrap", "tab", *RG, "--apply")
    done = shell("wrap", "tab", *RG, "--apply")
    assert (done.stdout, done.stderr, done.returncode) == (
        "", "runguard: wrap: tab: nothing to do; 2 guarded already\n", 0
    )  # fmt: skip
    assert table.read_text() == WRAPPED
    assert len(backups(table)) == 1


def test_lines_that_cannot_be_wrapped_are_named(shell: Shell, table: Path) -> None:
    table.write_text("@Daily x\n1 2 * * * y\n")
    done = shell("wrap", "tab", *RG)
    assert done.stderr.splitlines()[0] == "runguard: tab:1: left as it is: Debian's cron does not know @Daily"
    assert done.returncode == 0


def test_a_symbolic_link_stays_one(shell: Shell, table: Path) -> None:
    link = shell.directory / "link"
    link.symlink_to("tab")
    assert shell("wrap", "link", *RG, "--apply").returncode == 0
    assert link.is_symlink()
    assert table.read_text() == WRAPPED


def test_a_table_of_the_system_keeps_its_users(shell: Shell, table: Path) -> None:
    table.write_text("1 2 * * *\troot\t/opt/send\n")
    assert "\troot\t/opt/rg/bin/runguard run --job send " in shell("wrap", "tab", "--system", *RG).stdout


def test_the_zone_of_the_daemon_is_written_where_it_is_named(shell: Shell, table: Path) -> None:
    assert "--timezone Asia/Tokyo -- /opt" in shell("wrap", "tab", "-z", "Asia/Tokyo", *RG).stdout


def test_lines_call_runguard_by_its_whole_path(shell: Shell, table: Path) -> None:
    program = shell.directory / "bin" / "runguard"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = shell("wrap", "tab", environ={"PATH": f"{program.parent}:/usr/bin:/bin"})
    assert f"  {program} run --job send " in done.stdout


def live(shell: Shell, name: str, text: str) -> Path:
    """Make a table of this host as `shell` sees it: /etc/crontab, a file of cron.d, or in the spool."""
    program = shell.directory / "runguard"
    program.touch()
    program.chmod(0o755)
    etc = shell.directory / "etc"
    for each in ("cron.d", "spool"):
        (etc / each).mkdir(parents=True, exist_ok=True)
    (etc / "crontab").touch()
    (etc / name).write_text(text)
    shell.prefix = with_tables(etc)
    return etc / name


def rg(shell: Shell) -> tuple[str, ...]:
    """Return options for the program that `live` made."""
    return ("--runguard", str(shell.directory / "runguard"), "--daemon", "debian")


@needs_debian
def test_a_program_that_cannot_be_started_is_written_into_no_table_that_a_daemon_reads(shell: Shell) -> None:
    path = live(shell, "cron.d/letters", "1 2 * * * nobody /opt/send\n")
    said = refused(shell, "wrap", "/etc/cron.d/letters", *RG, "--apply")
    assert said.startswith("wrap: --runguard: /opt/rg/bin/runguard cannot be executed here: no line of /etc/cron.d/")
    assert path.read_text() == "1 2 * * * nobody /opt/send\n"
    program = shell.directory / "runguard"
    shell.directory.chmod(0o700)
    done = shell("wrap", "/etc/cron.d/letters", "--runguard", str(program), "--daemon", "debian")
    assert done.stderr.splitlines()[0] == (
        f"runguard: {program}: by the modes of its path nobody may not start it: --runguard names another"
    )


@needs_debian
def test_a_job_has_the_same_name_when_it_is_wrapped_again(shell: Shell) -> None:
    path = live(shell, "cron.d/letters", "1 2 * * * root /opt/send\n")
    for command in ("wrap", "unwrap", "wrap"):
        assert (
            shell(command, "/etc/cron.d/letters", "--apply", *(rg(shell) if command == "wrap" else ())).returncode == 0
        )
    assert "--job send --schedule" in path.read_text()


@needs_debian
def test_names_of_other_tables_of_the_host_are_not_used_again(shell: Shell) -> None:
    live(shell, "spool/nobody", "1 2 * * * runguard run -j send -- /opt/send\n")
    live(shell, "crontab", "1 2 * * * root runguard run -j send-2 -- /opt/send\n")
    live(shell, "cron.d/letters", "1 2 * * * root /opt/send\n")
    assert "--job send-3 --schedule" in shell("wrap", "/etc/cron.d/letters", *rg(shell)).stdout


@needs_debian
def test_a_link_to_a_table_of_the_system_is_one(shell: Shell) -> None:
    live(shell, "cron.d/letters", "1 2 * * * mail /opt/send\n")
    (shell.directory / "link").symlink_to("/etc/cron.d/letters")
    assert f"\n+1 2 * * * mail {shell.directory}/runguard run" in shell("wrap", "link", *rg(shell)).stdout


def test_a_disk_that_may_not_have_the_table_keeps_the_copy(nobodys: Shell) -> None:
    place = nobodys.directory / "place"
    place.mkdir()
    (place / "tab").write_text(TABLE)
    for path in (place, place / "tab"):
        os.chown(path, 65534, 65534)
    place.chmod(0o300)  # files may be made and replaced there; the directory cannot be opened to be synchronised
    done = nobodys("wrap", "place/tab", *RG, "--apply")
    [copy] = backups(place / "tab")
    assert (done.stdout, done.returncode) == ("", 74)
    said = f"written, but perhaps not down to the disk: Permission denied; as it was: {copy}"
    assert done.stderr == f"runguard: place/tab: {said}\n"
    assert ((place / "tab").read_text(), copy.read_text()) == (WRAPPED, TABLE)


@pytest.mark.skipif(not can_trace(), reason="needs strace and the right to trace")
@pytest.mark.parametrize(
    ("fault", "status", "written", "left"),
    [
        ("openat:signal=KILL:when=2", -9, False, 2),
        ("openat:signal=INT:when=2", 130, False, 0),
        ("openat:signal=KILL:when=3", -9, True, 1),
        ("openat:signal=INT:when=3", 130, True, 1),
        ("openat:error=EIO:when=3", 74, True, 1),
    ],
)
def test_a_table_is_the_one_or_the_other_whatever_ends_us(
    shell: Shell, fault: str, status: int, written: bool, left: int
) -> None:
    """The second file opened in the place is the new one, the third the directory; a new one that is left has a dot."""
    place = shell.directory / "place"
    place.mkdir()
    (place / "tab").write_text(TABLE)
    call = fault.partition(":")[0]
    traced = [option for path in (place, place / "tab") for option in ("-P", str(path))]
    shell.prefix = ("strace", "-o", "/dev/null", *traced, "-e", f"trace={call}", "-e", f"inject={fault}")
    assert shell("wrap", str(place / "tab"), *RG, "--apply").returncode == status
    assert (place / "tab").read_text() == (WRAPPED if written else TABLE)
    assert len(backups(place / "tab")) == left
    assert not written or backups(place / "tab")[0].read_text() == TABLE


def test_a_name_that_is_hostile_reaches_no_terminal_and_is_quoted(shell: Shell, table: Path) -> None:
    table.rename(shell.directory / "a b\x1b]2;x")
    assert shell("wrap", "a b\x1b]2;x", *RG).stderr.endswith("; runguard wrap 'a b\\x1b]2;x' --apply writes it\n")
    (shell.directory / "-t").write_text(TABLE)
    assert shell("wrap", *RG, "--", "-t").stderr.endswith("; runguard wrap ./-t --apply writes it\n")
    assert "\x1b]2" not in shell.on_terminal("wrap", "a b\x1b]2;x", *RG, "--apply")


# What is refused


def refused(shell: Shell, *arguments: str, status: int = 2, **options: object) -> str:
    done = shell(*arguments, **options)
    assert (done.stdout, done.returncode) == ("", status)
    assert done.stderr.startswith("runguard: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("runguard: ").rstrip("\n")


@pytest.mark.parametrize("command", ["lint", "wrap", "unwrap"])
def test_bad_input_is_one_line(shell: Shell, table: Path, command: str) -> None:
    assert refused(shell, command, "nowhere") == "nowhere: No such file or directory"
    assert refused(shell, command, "/") == "/: Is a directory"
    assert refused(shell, command, "/dev/null") == "/dev/null: it is no regular file"
    assert refused(shell, command, "") == f"{command}: FILE is empty"
    assert refused(shell, command, "tab", "--user", "ann").startswith(f"{command}: FILE")
    assert refused(shell, command, "--system") == f"{command}: --system goes with FILE"
    os.mkfifo(shell.directory / "fifo")
    assert refused(shell, command, "fifo") == "fifo: it is no regular file"
    table.write_bytes(b"A=b\n\x7fELF\0\n")
    assert refused(shell, command, "tab") == "tab:2: a NUL byte: it is no crontab"


def test_line_ends_of_another_system_are_refused(shell: Shell, table: Path) -> None:
    table.write_bytes(b"A=b\n1 2 * * * x\r\n")
    assert refused(shell, "wrap", "tab", *RG) == (
        r"tab:2: the line ends in CR LF, and cron takes the CR for text: sed -i 's/\r$//' tab"
    )


def test_a_comment_that_cannot_be_read_is_refused_with_its_line(shell: Shell, table: Path) -> None:
    table.write_text("# runguard: ingore\n1 2 * * * x\n")
    said = "tab:1: # runguard: 'ingore' is neither ignore, name=NAME nor allow=HAZARD"
    assert refused(shell, "wrap", "tab", *RG) == said
    assert refused(shell, "lint", "tab") == said


def test_the_program_must_have_a_plain_path(shell: Shell, table: Path) -> None:
    for path in ("runguard", "/opt/my dir/runguard", "/opt/100%/runguard", "/bin/true"):
        assert refused(shell, "wrap", "tab", "--runguard", path).startswith("wrap: --runguard: ")


@needs_debian
def test_a_table_that_crontab_writes_is_not_written_by_us(shell: Shell) -> None:
    live(shell, "spool/nobody", "1 2 * * * x\n")
    path = "/var/spool/cron/crontabs/nobody"
    for command in ("wrap", "unwrap"):
        assert refused(shell, command, path) == (
            f"{command}: {path} is the table of nobody, which the program crontab writes:"
            f" runguard {command} --user nobody"
        )
    assert shell("lint", path).returncode == 1


def test_a_file_with_two_names_is_refused(shell: Shell, table: Path) -> None:
    os.link(table, shell.directory / "other")
    said = refused(shell, "wrap", "tab", *RG, "--apply")
    assert said == "tab: the file has 2 names (hard links); nothing was written"
    assert (table.read_text(), backups(table)) == (TABLE, [])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(shell: Shell, table: Path) -> None:
    table.chmod(0)
    assert refused(shell, "wrap", "tab") == "tab: Permission denied"


def test_a_directory_that_may_not_be_written_leaves_the_table(shell: Shell, table: Path) -> None:
    place = shell.directory / "place"
    place.mkdir()
    shutil.copy(table, place / "tab")
    if os.geteuid() == 0:
        script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
        shell.prefix = ("unshare", "--mount", "sh", "-c", script, str(place))
    else:
        place.chmod(0o500)
    said = refused(shell, "wrap", str(place / "tab"), *RG, "--apply", status=74)
    assert re.fullmatch(rf"{place}/tab\.\S+~: (Permission denied|Read-only file system); nothing was written", said)
    assert [path.name for path in place.iterdir()] == ["tab"]


def test_a_table_that_changes_meanwhile_is_not_replaced(shell: Shell) -> None:
    """The program crontab of this test changes the table each time that it is read, as an editor would."""
    fake = shell.directory / "bin" / "crontab"
    fake.parent.mkdir()
    fake.write_text(
        f'#!/bin/sh\n[ "$1" = -l ] || exit 9\ncat {shell.directory}/t\necho "# more" >> {shell.directory}/t\n'
    )
    fake.chmod(0o755)
    shutil.copy(fake, shell.directory / "runguard")
    (shell.directory / "t").write_text("1 2 * * * x\n")
    environ = {"PATH": f"{fake.parent}:/usr/bin:/bin"}
    said = refused(shell, "wrap", *rg(shell), "--apply", status=75, environ=environ)
    assert said == "your crontab: it was changed meanwhile; nothing was written"


def test_a_file_that_changes_meanwhile_is_not_replaced(table: Path) -> None:
    from runguard.crontab import files
    from runguard.errors import CrontabError

    with pytest.raises(CrontabError, match="tab: it was changed meanwhile; nothing was written") as raised:
        files.replace(str(table), b"what was read\n", b"new\n", "stamp")
    assert raised.value.status == 75
    assert (table.read_text(), backups(table)) == (TABLE, [])


def test_two_edits_do_not_meet(shell: Shell, table: Path) -> None:
    from filelock import FileLock

    shell.state.mkdir(mode=0o700)
    with FileLock(shell.state / "crontab.lock"):
        said = refused(shell, "wrap", "tab", *RG, "--apply", status=75)
    assert said == "another edit of a crontab is under way; nothing was written"
    assert table.read_text() == TABLE


def test_a_user_without_a_table_is_told_what_crontab_says(shell: Shell) -> None:
    fake = shell.directory / "bin" / "crontab"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "no crontab for $2" >&2\nexit 1\n')
    fake.chmod(0o755)
    environ = {"PATH": f"{fake.parent}:/usr/bin:/bin"}
    assert refused(shell, "unwrap", "--user", "ann", environ=environ) == "crontab of ann: no crontab for ann"
    assert refused(shell, "wrap", *RG, environ={"PATH": "/nowhere"}) == "the program crontab is not in PATH (/nowhere)"
