"""A run with more case entries than memory should hold."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from shell import Shell


@pytest.mark.long
def test_a_million_entries_in_one_run(shell: Shell) -> None:
    script = """
import json, os
with open(os.environ["RUNGUARD_ITEMS"], "a", buffering=1 << 20) as file:
    for n in range(500_000):
        head = {"case": f"HB-{n:07}", "action": "send", "key": str(n)}
        file.write(json.dumps({**head, "phase": "intent"}) + "\\\\n")
        file.write(json.dumps({**head, "phase": "result", "result": "done"}) + "\\\\n")
"""
    path = shell.directory / "many.py"
    path.write_text(script.replace("\\\\n", "\\n"))
    command = [sys.executable, "-m", "runguard", "run", "-j", "tail", "--", sys.executable, str(path)]
    before = shell("run", "-j", "tail", "--", "true")
    assert before.returncode == 0
    running = subprocess.Popen(command, env=shell.environ, cwd=shell.directory)
    _, status, usage = os.wait4(running.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert usage.ru_maxrss < 80 * 1024
    told = shell.json("show", "2")[0]["items"]
    assert (told["entries"], told["cases"], told["done"], told["uncertain"]) == (1_000_000, 500_000, 500_000, 0)
    assert len(shell.json("show", "2", "--items")) == 1_000_000
