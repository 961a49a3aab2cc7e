import sqlite3
from pathlib import Path

import runguard.store
from runguard.store import statements
from runguard.store.reads import Ping, Run

ROOM = Path(runguard.store.__file__).parent


def test_every_statement_is_explained_and_names_its_columns():
    for name, statement in statements.load().items():
        assert statement.startswith("-- "), name
        assert "*" not in statement.replace("/*", "").replace("*/", "").split("\n", 1)[1], name


def test_every_statement_is_understood_by_sqlite():
    connection = sqlite3.connect(":memory:")
    for migration in sorted((ROOM / "migrations/sqlite").glob("*.sql")):
        connection.executescript(migration.read_text())
    for statement in statements.load().values():
        names = {word.strip(":,()") for word in statement.replace("(", " ").split() if word.startswith(":")}
        connection.execute(f"EXPLAIN {statement}", dict.fromkeys(names))


def test_every_statement_is_sent_by_some_module():
    code = "".join(path.read_text() for path in ROOM.parent.rglob("*.py"))
    assert [name for name in statements.load() if f'"{name}"' not in code] == []


def test_a_run_has_the_columns_in_order():
    text = (ROOM / "queries.sql").read_text().split("-- name: run_columns\n")[1].split("-- name:")[0]
    assert tuple(text.replace("\n", " ").replace(" ", "").split(",")) == Run._fields


def test_a_ping_has_the_columns_in_order():
    selected = statements.load()["pings"].split("SELECT")[1].split("FROM")[0]
    assert tuple(selected.replace("\n", " ").replace(" ", "").split(",")) == Ping._fields
