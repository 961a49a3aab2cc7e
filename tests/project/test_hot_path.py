"""What is imported before the command is spawned: asserted on sys.modules, never on milliseconds."""

import subprocess
import sys
from pathlib import Path

import runguard

SOURCE = Path(runguard.__file__).parent

HEAVY = {
    "click", "rich", "requests", "filelock", "dateutil", "dataclasses", "subprocess", "logging", "argparse", "pathlib",
    "uuid", "importlib.metadata", "typing", "enum", "re", "json", "signal", "socket", "datetime", "sqlite3", "zoneinfo",
    "hashlib", "ctypes", "tomllib", "threading", "shlex", "tempfile", "inspect", "contextlib",
}  # fmt: skip

# What only a ping, a remark, a refusal, a run that died, a first start or a spool needs.
RARE = {
    f"runguard.{name}"
    for name in (
        "printable", "children", "guard.telling", "guard.like_cron", "guard.late", "guard.excerpts", "guard.leftovers",
        "guard.liveness",
        "guard.passing", "guard.spool", "guard.deadline", "guard.listener", "heartbeat.address", "heartbeat.event",
        "heartbeat.targets", "heartbeat.body", "heartbeat.client", "heartbeat.lateness", "heartbeat.patience",
        "heartbeat.ownfiles", "heartbeat.slot", "heartbeat.spool", "heartbeat.styles", "store.creation", "store.faults",
        "guard.attempts", "guard.batch", "guard.casework", "guard.dead_cases", "guard.earlier_cases", "guard.intake",
        "evidence.entries", "evidence.lists", "evidence.tail", "evidence.tally", "store.items", "store.finding",
        "store.reconciling", "store.reserve", "config.keylines", "config.strict",
    )
}  # fmt: skip

# Prints the modules that are loaded when the command is about to be spawned: an audit hook sees the spawn itself.
PROBE = """
import gc, sys
def hook(event, arguments):
    if event == "os.posix_spawn" and arguments[0] == "/bin/true":
        print("loaded", *sorted(sys.modules), *(["collecting"] if gc.isenabled() else []), file=sys.stderr)
sys.addaudithook(hook)
from runguard.cli.fast import main
sys.argv = ["runguard", "run", "-j", sys.argv[1], "-s", "30 2 * * *", "-z", "Europe/London"]
sys.argv += ["--scheduled-at", "2026-06-01T01:30:00Z", "--", "/bin/true"]
main()
"""


def loaded_before_the_spawn(tmp_path: Path, settings: str) -> set[str]:
    config = tmp_path / "runguard.toml"
    config.write_text(f'timeout = "1h"\n\n[jobs.probe]\n{settings}')
    environ = {"RUNGUARD_STATE_DIR": str(tmp_path / "state"), "RUNGUARD_CONFIG": str(config), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{PROBE}"]
    for job in ("first", "probe"):  # the first start parses the configuration, the second finds it in the cache
        done = subprocess.run([*command, job], env=environ, capture_output=True, text=True, check=True)
    return set(next(line for line in done.stderr.splitlines() if line.startswith("loaded ")).split())


def test_nothing_heavy_is_imported_before_the_command_is_spawned(tmp_path: Path) -> None:
    loaded = loaded_before_the_spawn(tmp_path, "")
    assert "runguard.guard.flow" in loaded
    assert loaded & HEAVY == set()


def test_a_start_loads_nothing_that_only_a_rare_one_needs(tmp_path: Path) -> None:
    names = {path.relative_to(SOURCE).with_suffix("").as_posix().replace("/", ".") for path in SOURCE.rglob("*.py")}
    assert {name.removeprefix("runguard.") for name in RARE} - {
        name.removesuffix(".__init__") for name in names
    } == set()
    assert loaded_before_the_spawn(tmp_path, "") & {*RARE, "collecting"} == set()


def test_of_a_ping_only_its_monitor_is_loaded_before_the_spawn(tmp_path: Path) -> None:
    loaded = loaded_before_the_spawn(tmp_path, 'ping = "http://127.0.0.1:9/"\n')
    assert loaded & RARE == {"runguard.guard.telling"}
    assert loaded & HEAVY == set()
