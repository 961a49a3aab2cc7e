"""What is imported before the command is spawned: asserted on sys.modules, never on milliseconds."""

import subprocess
import sys
from pathlib import Path

HEAVY = {
    "click", "rich", "requests", "filelock", "dateutil", "dataclasses", "subprocess", "logging", "argparse", "pathlib",
    "uuid", "importlib.metadata", "typing", "enum", "re", "json", "signal", "socket", "datetime", "sqlite3", "zoneinfo",
    "hashlib", "tomllib", "threading", "shlex", "tempfile", "inspect", "contextlib",
}  # fmt: skip

# Prints the modules that are loaded when the command is about to be spawned: an audit hook sees the spawn itself.
PROBE = """
import sys
def hook(event, _):
    if event in ("os.posix_spawn", "os.fork"):
        print(*sorted(sys.modules), file=sys.stderr)
sys.addaudithook(hook)
from runguard.cli.fast import main
sys.argv = ["runguard", "run", "-j", sys.argv[1], "-s", "30 2 * * *", "-z", "Europe/London", "--", "/bin/true"]
main()
"""


def loaded_before_the_spawn(tmp_path: Path) -> set[str]:
    config = tmp_path / "runguard.toml"
    config.write_text('timeout = "1h"\n\n[jobs.probe]\nping_start = false\n')
    environ = {"RUNGUARD_STATE_DIR": str(tmp_path / "state"), "RUNGUARD_CONFIG": str(config), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{PROBE}"]
    for job in ("first", "probe"):  # the first start parses the configuration, the second finds it in the cache
        done = subprocess.run([*command, job], env=environ, capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


def test_nothing_heavy_is_imported_before_the_command_is_spawned(tmp_path: Path) -> None:
    loaded = loaded_before_the_spawn(tmp_path)
    assert "runguard.guard.flow" in loaded
    assert loaded & HEAVY == set()
