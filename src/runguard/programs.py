"""Programs of others that are run to their end in passing: what they print is a value, and none of them may hang us.

Not for guarded commands, which are the matter of `runguard.guard.process`, and never before one is spawned.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Done(NamedTuple):
    """How a program ended."""

    status: int  # -N: by signal N
    out: bytes
    err: bytes

    @property
    def last_word(self) -> str:
        """The last line that it said, on stderr or else on stdout, for a message."""
        said = (self.err.strip() or self.out.strip()).decode("utf-8", "replace").splitlines()
        return said[-1][:200] if said else f"status {self.status}"


def run(argv: Sequence[str], environ: Mapping[str, str], *, given: bytes = b"", patience_s: float) -> Done:
    """Run a program in a session of its own, with `given` on its stdin, and return how it ended.

    Raises OSError where it cannot be started, and TimeoutError after `patience_s` seconds: it has been killed then.
    """
    with subprocess.Popen(
        argv, env=dict(environ), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(given, timeout=patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise TimeoutError(f"it has not ended within {patience_s:g} s") from None
        except BaseException:
            process.kill()
            raise
    return Done(process.returncode, out, err)
