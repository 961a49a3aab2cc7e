"""What a verdict needs to know of the record: the shapes only, so that nothing here knows a store."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Protocol

    class Start(Protocol):
        """A start of a job, or a refused one; with the bounds of its window as they were recorded."""

        @property
        def number(self) -> int: ...
        @property
        def key(self) -> str | None: ...
        @property
        def start_us(self) -> int: ...
        @property
        def due_us(self) -> int: ...
        @property
        def label(self) -> str | None: ...
        @property
        def nominal(self) -> str | None: ...
        @property
        def outcome(self) -> str: ...
        @property
        def exit_status(self) -> int | None: ...
        @property
        def why(self) -> str | None: ...
        @property
        def suspect(self) -> str | None: ...
        @property
        def seq(self) -> int: ...
        @property
        def covers_first_us(self) -> int | None: ...
        @property
        def covers_last_us(self) -> int | None: ...

    class Waiver(Protocol):
        """A person answered for a window by its key, or for the dues in `(since_us, until_us]`; or took it back."""

        @property
        def seq(self) -> int: ...
        @property
        def key(self) -> str | None: ...
        @property
        def since_us(self) -> int | None: ...
        @property
        def until_us(self) -> int | None: ...
        @property
        def withdraw(self) -> bool: ...
        @property
        def reason(self) -> str | None: ...
        @property
        def actor(self) -> str | None: ...

    class Span(Protocol):
        """The dues that a catch-up covers besides its own, both ends included."""

        @property
        def first_us(self) -> int: ...
        @property
        def last_us(self) -> int: ...

    class Refusal(Protocol):
        """A start for a window that was not let run."""

        @property
        def key(self) -> str: ...
        @property
        def number(self) -> int: ...
        @property
        def why(self) -> str | None: ...

    class Record(Protocol):
        """What a store answers; spans are of dues, `after < due <= until`."""

        def answered_dues(self, job: str, after_us: int, until_us: int, /) -> Sequence[int]:
            """Return the dues that some start was let run for, ascending, each once."""

        def answered_keys(self, job: str, keys: Iterable[str], /) -> set[str]:
            """Return those of `keys` for whose windows some start was let run, whenever that was due."""

        def covers(self, job: str, after_us: int, until_us: int, /) -> Sequence[Span]:
            """Return what catch-ups cover of a span."""

        def refusals(self, job: str, after_us: int, until_us: int, /) -> Sequence[Refusal]:
            """Return the refused starts of a span, by due."""

        def waivers(self, job: str, after_us: int, until_us: int, /) -> Sequence[Waiver]:
            """Return the waivers that may match a due of a span."""
