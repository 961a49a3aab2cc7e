"""What runguard says on stderr during a run, and into the record: only when something is wrong."""

from __future__ import annotations

from runguard.guard.outlet import say
from runguard.heartbeat.redact import given_up, mask_text

_MOST_LINES = 20  # a fault that repeats must not fill a disk


class Voice:
    """Says remarks about one job, each one line, and keeps them for the record."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._untold: list[str] = []
        self._said: set[str] = set()
        self._secrets: tuple[str, ...] = ()
        self._patterns: tuple[str, ...] = ()
        self._given_up = False
        self._unheard = False

    def keep_secret(self, secrets: tuple[str, ...], patterns: tuple[str, ...]) -> None:
        """Mask these from now on: remarks quote command lines of processes."""
        self._secrets, self._patterns = secrets, patterns

    def masked(self, text: str) -> str:
        """Return `text` as it may be said and recorded."""
        return mask_text(text, self._secrets, self._patterns)

    def __call__(self, text: str, aside: str = "") -> None:
        """Say `text` on stderr, once, and keep it; what is said `aside` behind it is not kept."""
        self._say(self.masked(text), self.masked(aside) if aside else "")

    def keep(self, text: str) -> None:
        """Keep `text` for the record without saying it."""
        self._untold.append(self.masked(text))

    def _say(self, text: str, aside: str = "") -> None:
        self._untold.append(text)
        text += aside
        if text in self._said or len(self._said) >= _MOST_LINES or self._unheard:
            return
        from runguard import printable  # only where something is wrong

        self._said.add(text)
        if len(self._said) == _MOST_LINES:
            text = "there is more to remark: see the run's record"
        # Whoever has once not taken a remark in time shall not delay the job once more for each of them.
        self._unheard = not say(f"runguard: {printable.line(f'{self._job}: {text}')}\n")

    def take(self) -> list[str]:
        """Return what was said since the last call, for the record."""
        if given_up() and not self._given_up:
            self._given_up = True
            self._say("a pattern of `mask` takes too long; text for which it did is masked whole")
        untold, self._untold = self._untold, []
        return untold
