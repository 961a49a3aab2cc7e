"""The statements of `queries.sql`, by name."""

from __future__ import annotations

import os

_MARK = "-- name: "


def load(path: str = "") -> dict[str, str]:
    """Return the text of every statement by its name, comments included.

    A statement begins with a line `-- name: NAME`. `/*run_columns*/` stands for the columns of a run, in the order of
    `reads.Run`.
    """
    with open(path or os.path.join(os.path.dirname(__file__), "queries.sql"), encoding="utf-8") as file:
        text = file.read()
    found = {}
    for chunk in text.split(_MARK)[1:]:
        name, _, statement = chunk.partition("\n")
        found[name] = statement
    columns = found.pop("run_columns")
    for name, statement in found.items():
        if "/*run_columns*/" in statement:
            found[name] = statement.replace("/*run_columns*/", columns)
    return found
