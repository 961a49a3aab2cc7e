"""The statements of `queries.sql`, by name."""

from __future__ import annotations

import os

_MARK = "-- name: "


def load(path: str = "") -> dict[str, str]:
    """Return the text of every statement by its name, comments included.

    A statement begins with a line `-- name: NAME`. `/*run_columns*/` stands for the columns of a run, in the order of
    `reads.Run`.
    """
    with open(path or os.path.join(os.path.dirname(__file__), "queries.sql"), "rb", buffering=0) as file:
        text = (file.read() or b"").decode()
    columns = text.partition(f"{_MARK}run_columns\n")[2].partition(_MARK)[0]
    chunks = text.replace("/*run_columns*/", columns).split(_MARK)[1:]
    found = {name: statement for name, _, statement in [chunk.partition("\n") for chunk in chunks]}
    del found["run_columns"]
    return found
