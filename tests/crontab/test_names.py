"""Names for jobs, from commands that people write."""

from __future__ import annotations

import pytest

from runguard import values
from runguard.crontab.names import derive, unused


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (b"/opt/letters/send --all", "send"),
        (b"cd /srv/poll && ./fetch.sh | ./store", "fetch"),
        (b"test -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }", "cron.daily"),
        (b"/usr/bin/python3 -u /opt/x/report.py", "report"),
        (b"python3 -m letters.send", "letters.send"),
        (b"sudo -u letters /opt/a/b.sh", "b"),
        (b"flock -n /run/lock/x.lock /opt/y", "y"),
        (b"nice -n 10 ionice -c3 timeout 2h /opt/z", "z"),
        (b"bash -c 'cd /x; ./do-it'", "do-it"),
        (b"su - www -c '/opt/q a'", "q"),
        (b"[ -x /opt/clean ] && /opt/clean", "clean"),
        (b"if command -v sa1 >/dev/null; then sa1 1 1; fi", "sa1"),
        (b". /etc/profile; /opt/k", "k"),
        (b"FOO=$HOME/x $HOME/bin/backup.sh >> log 2>&1", "backup"),
        (b"'/opt/with space/x y'", "x-y"),
        (b"tar czf /tmp/$(date +", "tar"),
        (b"A='x mysqldump --all", "mysqldump"),
        (b"/opt/\xd1\x82 --name=x", "job"),
        (b"echo hello", "echo"),
        (b"rm -f /tmp/x && /opt/l", "l"),
        (b"/opt/\xff\xfe", "job"),
        (b"exit 0", "job"),
        (b"flock -n l -c '/opt/y | tee x'", "y"),
        (b"bash -lc 'cd /x; ./do-it'", "do-it"),
        (b"taskset -c 0 /opt/y", "y"),
        (b"python3 -c 'import os'", "python3"),
        (b"'/opt/x y' now", "x-y"),
    ],
)
def test_a_command_and_its_name(command: bytes, name: str) -> None:
    assert derive(command) == name
    assert values.job_name(name) == name


def test_a_long_name_is_cut_and_still_told_apart() -> None:
    name = derive(b"/opt/" + b"x" * 300)
    assert name == "x" * 100
    assert unused(name, {name}, {}) == "x" * 98 + "-2"
