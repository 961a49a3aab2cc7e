"""The floors: a module imports only lower floors, its own room, and words and pure functions as it likes."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "runguard"

# One module a line: changes side by side then merge by themselves.
FLOORS = {
    # 0: words
    "": 0,
    "children": 0,
    "errors": 0,
    "instant": 0,
    "items": 0,  # what jobs import: nothing else of the package
    "model": 0,
    "record": 0,
    # 1: pure functions of values
    "coverage": 1,
    "evidence.entries": 1,
    "evidence.lists": 1,
    "evidence.touches": 1,
    "evidence.unknown": 1,
    "evidence.tally": 1,
    "guard.decide": 1,
    "guard.frames": 1,
    "guard.mishaps": 1,
    "heartbeat.address": 1,
    "heartbeat.body": 1,
    "heartbeat.event": 1,
    "heartbeat.lateness": 1,
    "heartbeat.management": 1,
    "heartbeat.slot": 1,
    "heartbeat.patience": 1,
    "heartbeat.redact": 1,
    "heartbeat.reply": 1,
    "heartbeat.styles": 1,
    "heartbeat.targets": 1,
    "printable": 1,
    "programs": 1,  # the one way to run a program, whoever does
    "private": 1,  # the one judge of directories, whoever makes them
    "schedule": 1,
    "settings": 1,
    "store.lines": 1,
    "store.statements": 1,
    "values": 1,
    "crontab": 1,
    # 2: one outside thing each
    "clock": 2,
    "evidence.signing": 2,
    "config": 2,
    "crontab.files": 2,
    "crontab.host": 2,
    "evidence.tail": 2,
    "guard": 2,
    "heartbeat": 2,
    "paths": 2,
    "sender": 2,
    "store": 2,
    "zones": 2,
    # 3: uses of the edges
    "evidence": 3,
    "guard.answering": 3,
    "guard.attempts": 3,
    "guard.batch": 3,
    "guard.casefile": 3,
    "guard.casework": 3,
    "guard.catching_up": 3,
    "guard.command": 3,
    "guard.dead_cases": 3,
    "guard.deadline": 3,
    "guard.earlier_cases": 3,
    "guard.ending_others": 3,
    "guard.expecting": 3,
    "guard.foretell": 3,
    "guard.hindsight": 3,
    "guard.holding": 3,
    "guard.intake": 3,
    "guard.judging": 3,
    "guard.late": 3,
    "guard.leftovers": 3,
    "guard.listener": 3,
    "guard.overlap": 3,
    "guard.prepare": 3,
    "guard.registering": 3,
    "guard.retrying": 3,
    "guard.steps": 3,
    "guard.telling": 3,
    "guard.tidying": 3,
    "guard.writing": 3,
    # 4: the order of steps
    "guard.anchoring": 4,
    "guard.recovering": 5,
    "guard.aftermath": 4,
    "guard.books": 4,
    "guard.flow": 4,
    "guard.journaling": 4,
    "guard.refusing": 4,
    "evidence.verify": 4,
    "evidence.beside": 4,
    "evidence.explain": 4,
    "evidence.whynot": 4,
    # 5: what is told of all that
    "report": 5,
    # 6: the command line
    "cli": 6,
    "__main__": 7,
}

MODULES = sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


def floor_of(module: str) -> int:
    while module not in FLOORS:
        module = module.rpartition(".")[0]
    return FLOORS[module]


def room_of(module: str) -> str:
    return module.partition(".")[0]


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    known = {f"runguard.{name_of(module)}".rstrip(".") for module in MODULES}
    ours = {name for name in found if name.split(".")[0] == "runguard"}
    return {(name if name in known else name.rpartition(".")[0]).removeprefix("runguard").lstrip(".") for name in ours}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_lower_floors_or_its_own_room(path: Path) -> None:
    module = name_of(path)
    higher = [
        other
        for other in imports_of(path)
        if floor_of(other) > floor_of(module) - (floor_of(module) > 1) and room_of(other) != room_of(module)
    ]
    assert higher == []


def importers_of(package: str) -> set[str]:
    importers = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == package for name in names):
                importers.add(name_of(path))
    return importers


def test_only_the_command_line_knows_click_and_rich() -> None:
    assert {room_of(module) for module in importers_of("click")} == {"cli"}
    assert importers_of("rich") == {"cli.output"}


def test_only_the_sender_imports_requests() -> None:
    assert importers_of("requests") == {"sender"}


def test_only_the_store_speaks_sql() -> None:
    assert {room_of(module) for module in importers_of("_sqlite3") | importers_of("sqlite3")} == {"store"}
