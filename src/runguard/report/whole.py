"""A file that others read at any time: always whole, the old one or the new one."""

from __future__ import annotations

import os
import tempfile


def write(path: str, content: bytes, mode: int) -> None:
    """Replace the file at `path`, or make it, with `mode` whatever the umask. Raises OSError: the old one stays.

    The new one is written beside it, under a hidden name of another ending: a collector of `*.prom` never reads half.
    """
    file, fresh = tempfile.mkstemp(prefix=".runguard-", suffix=".new", dir=os.path.dirname(path) or ".")
    try:
        try:
            os.fchmod(file, mode)
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise
