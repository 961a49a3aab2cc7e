"""What runguard says on stderr during a run, and into the record: only when something is wrong."""

from __future__ import annotations

from runguard.guard.outlet import say

_MOST_LINES = 20  # a fault that repeats must not fill a disk


class Voice:
    """Says remarks about one job, each one line, and keeps them for the record."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._untold: list[str] = []
        self._said = 0

    def __call__(self, text: str) -> None:
        """Say `text` on stderr and keep it."""
        self._untold.append(text)
        self._said += 1
        if self._said <= _MOST_LINES:
            from runguard import printable  # only where something is wrong

            say(f"runguard: {printable.line(f'{self._job}: {text}')}\n")

    def take(self) -> list[str]:
        """Return what was said since the last call, for the record."""
        untold, self._untold = self._untold, []
        return untold
