"""Errors that nobody foresaw, in bookkeeping: they are told, and the job runs all the same. Imported only then."""

from __future__ import annotations

from runguard.errors import StoreError


def as_store_error(path: str, error: Exception) -> StoreError:
    """Return what went wrong with the store at `path` as the error that sends the record to the journal.

    A bug keeps its place: the line of our own code that it came from.
    """
    if isinstance(error, StoreError):
        return error
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = ""
    if trace is not None:
        file = trace.tb_frame.f_code.co_filename.rpartition("/")[2]
        place = f" at {file}:{trace.tb_lineno}"
    return StoreError(path, f"a bug in runguard, or damage that it does not know: {error!r}{place}")
