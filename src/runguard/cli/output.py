"""How answers are printed: table, JSON, JSON lines, CSV. The only importer of rich.

A table on a terminal has colour and fits its width; piped it is plain columns and nothing is cut. Nothing that came
from a job, a person or a file reaches a terminal unescaped.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO

from runguard import printable
from runguard.errors import OutputError

if TYPE_CHECKING:
    from rich.progress import Progress

# Rows whose widths decide those of the plain columns; more are printed as they come.
MEASURED_ROWS = 2000
WIDE = 24  # what columns that may be cut keep, as long as others can be shortened
NARROWEST = 6  # a column that would be narrower is left out

OUTCOME_COLOURS = {
    "succeeded": "green",
    "running": "cyan",
    "failed": "bold red",
    "timed_out": "bold red",
    "killed": "bold red",
    "lost": "bold red",
    "cancelled": "yellow",
    "refused": "yellow",
    "superseded": "magenta",
    "missing": "bold red",
    "waived": "blue",
    "pending": "cyan",
    "ok": "green",
    "warning": "yellow",
    "critical": "bold red",
    "unknown": "magenta",
    "fault": "bold red",
}


class Column(NamedTuple):
    """A column of a table. Where a terminal is narrow, `spare` columns are left out from the first on, cells are cut
    to `short`, then `cut` columns give way, and the cells of a `wrap` column go on in the next line.
    """

    title: str
    right: bool = False
    cut: bool = False
    short: int = 0
    spare: bool = False
    wrap: bool = False


class Row(NamedTuple):
    """One object of an answer: as JSON tells it, and as cells of a table."""

    facts: Mapping[str, Any]
    cells: Sequence[str]


@contextmanager
def stdout() -> Iterator[TextIO]:
    """Give our stdout, for text that every encoding takes. Raises OutputError, or BrokenPipeError."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"stdout cannot be written: {error.strerror}") from None


def emit(form: str, rows: Iterable[Row], columns: Sequence[Column], fields: Sequence[str]) -> None:
    """Print `rows` to stdout. `fields` names the columns of CSV: `window.key` is the key in the object `window`."""
    with stdout() as out:
        match form:
            case "json":
                _json(out, rows)
            case "jsonl":
                for row in rows:
                    out.write(spelled(row.facts) + "\n")
            case "csv":
                _csv(out, rows, fields)
            case _ if out.isatty():
                _terminal(out, list(rows), columns)
            case _:
                _plain(out, rows, columns)


def spelled(value: object) -> str:
    """Return JSON in ASCII that every reader takes: a byte that was no UTF-8 is spelled `\\xff`, never NaN."""
    return json.dumps(_valid(value), allow_nan=False)


def page(lines: Iterable[str], hang: int = 0) -> None:
    """Print lines that are safe already. With `hang` they are broken between words on a terminal, and indented so.

    A command stays one line: it is to be copied.
    """
    with stdout() as out:
        if hang and out.isatty():
            width = max(os.get_terminal_size(out.fileno()).columns, hang + WIDE)
            lines = itertools.chain.from_iterable(_broken(line, width, hang) for line in lines)
        out.writelines(line + "\n" for line in lines)


def _broken(line: str, width: int, hang: int) -> list[str]:
    if len(line) <= width or line.startswith("  command "):
        return [line]
    import textwrap

    return textwrap.wrap(
        line, width, subsequent_indent=" " * hang, replace_whitespace=False, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def raw(pieces: Iterable[bytes]) -> None:
    """Write bytes of a job's output: escaped on a terminal, exact into a pipe or file."""
    with stdout() as out:
        if out.isatty():
            text = printable.raw(b"".join(pieces))
            out.write(text if text.endswith("\n") else text + "\n")
            return
        for piece in pieces:
            _write(1, piece)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _json(out: TextIO, rows: Iterable[Row]) -> None:
    before = "["
    for row in rows:
        out.write(f"{before}\n  {spelled(row.facts)}")
        before = ","
    out.write("[]\n" if before == "[" else "\n]\n")


def _csv(out: TextIO, rows: Iterable[Row], fields: Sequence[str]) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([field.replace(".", "_") for field in fields])
    terminal = out.isatty()
    for row in rows:
        cells = [_csv_cell(_at(row.facts, field)) for field in fields]
        writer.writerow([printable.line(cell) for cell in cells] if terminal else cells)


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return str(_valid(value))
    return spelled(value)


def _at(facts: Mapping[str, Any], field: str) -> object:
    value: Any = facts
    for key in field.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _terminal(out: TextIO, rows: list[Row], columns: Sequence[Column]) -> None:
    if not rows:
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=out, markup=False, highlight=False, emoji=False)
    shown, kept = _fitted([[printable.line(cell) for cell in row.cells] for row in rows], columns, console.width)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for at in kept:
        justify: Literal["left", "right"] = "right" if columns[at].right else "left"
        table.add_column(columns[at].title, justify=justify, no_wrap=not columns[at].wrap, overflow="fold")
    for cells in shown:
        table.add_row(*(Text(cells[at], "" if columns[at].wrap else _colour(cells[at])) for at in kept))
    console.print(table)


def _colour(cell: str) -> str:
    return OUTCOME_COLOURS.get(cell.partition(" ")[0], "")


def _fitted(rows: list[list[str]], columns: Sequence[Column], width: int) -> tuple[list[list[str]], list[int]]:
    """Return the cells, and which columns to show, so that they fit into `width` as far as that can be."""
    widths = [max(len(cells[at]) for cells in ([each.title for each in columns], *rows)) for at in range(len(columns))]
    left = width - sum(widths) - len(widths) + 1
    kept = list(range(len(columns)))
    for at, column in enumerate(columns):
        if left < 0 and column.spare:
            left += widths[at] + 1
            kept.remove(at)
    for at, column in enumerate(columns):
        if left < 0 and column.cut and widths[at] > WIDE:
            room = max(WIDE, widths[at] + left)
            left += widths[at] - room
            widths[at] = room
    for at, column in enumerate(columns):
        if left < 0 and column.short and widths[at] > column.short:
            rows = [[*cells[:at], cells[at][: column.short], *cells[at + 1 :]] for cells in rows]
            left += widths[at] - column.short
    for at in reversed(kept.copy()):
        if columns[at].cut:
            room = widths[at] + min(left, 0)
            rows = [[*cells[:at], _cut(cells[at], room), *cells[at + 1 :]] for cells in rows]
            left += widths[at] - room
            if room < min(NARROWEST, widths[at]):
                left += room + 1
                kept.remove(at)
    return rows, kept


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: max(width - 1, 0)] + "…"


def _plain(out: TextIO, rows: Iterable[Row], columns: Sequence[Column]) -> None:
    titles = [column.title for column in columns]
    shown = ([printable.line(cell) for cell in row.cells] for row in rows)
    measured = list(itertools.islice(shown, MEASURED_ROWS))
    if not measured:
        return
    widths = [max(len(cells[at]) for cells in [titles, *measured]) for at in range(len(columns))]
    for cells in itertools.chain([titles], measured, shown):
        out.write(_aligned(cells, widths, columns) + "\n")


def _aligned(cells: Sequence[str], widths: Sequence[int], columns: Sequence[Column]) -> str:
    padded: Iterator[str] = (
        cell.rjust(width) if column.right else cell.ljust(width)
        for cell, width, column in zip(cells, widths, columns, strict=True)
    )
    return "  ".join(padded).rstrip()


def _valid(value: object) -> object:
    """Return the value without lone surrogates, which strict readers of JSON refuse."""
    match value:
        case str() if not value.isascii():
            return "".join(printable.line(each) if "\ud800" <= each <= "\udfff" else each for each in value)
        case Mapping():
            return {_valid(key): _valid(each) for key, each in value.items()}
        case list() | tuple():
            return [_valid(each) for each in value]
    return value


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[], None]]:
    """Give a function that advances and prints a progress bar, on a terminal's stderr only.

    Each state of it is a line of its own: the output of commands comes between.
    """
    if total < 2 or not sys.stderr.isatty():
        yield lambda: None
        return
    bar = _bar(title)
    task = bar.add_task(title, total=total)

    def advance() -> None:
        bar.advance(task)
        bar.console.print(bar.get_renderable())

    yield advance


@contextmanager
def steps(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Give a function that advances a progress bar by so many, on a terminal's stderr only."""
    if total < 10_000 or not sys.stderr.isatty():
        yield lambda _: None
        return
    with _bar(title) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)


@contextmanager
def working(title: str) -> Iterator[Callable[[int], None]]:
    """Give a function that counts what is done of work whose end is not known, on a terminal's stderr only."""
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if done // 1_000 != (done - count) // 1_000:
            sys.stderr.write(f"{title}: {done:,} \r")  # what is printed next takes its place
            sys.stderr.flush()

    yield advance if sys.stderr.isatty() else lambda _: None


def _bar(title: str) -> Progress:
    """Return a bar on stderr, which goes away with the `with` that shows it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(printable.line(title)), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
