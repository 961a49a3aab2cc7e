"""When people are told how jobs stand: of each change once, once a day while something is wrong, of the end once."""

from __future__ import annotations

from runguard.instant import DAY_S, SECOND_US
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DAY_US = DAY_S * SECOND_US
# A check that comes once a day never comes exactly a day later.
_EARLY_US = 30 * 60 * SECOND_US
# Two checks at once: what the other one saw later counts. A greater distance is a clock that was set back.
_TOGETHER_US = 120 * SECOND_US


class Said(NamedTuple):
    """What people were told last."""

    levels: Mapping[str, str]  # by job, of all that was not ok; "": what concerns no job, such as the store
    said_us: int  # when a change was told
    repeats: int = 0  # days on which it was repeated since


class Notice(NamedTuple):
    """What is to be told now, and what to remember once it was."""

    event: str  # problem | repeat | recovery
    said: Said


def notice(said: Said | None, levels: Mapping[str, str], now_us: int) -> Notice | None:
    """Return what is to be told of `levels` (those that are not ok, as in Said), seen at `now_us`; None for nothing.

    A job that has become worse or better while others stay as they are is a problem too: it is told, with all.
    """
    if said is None:
        return Notice("problem", Said(levels, now_us)) if levels else None
    behind_us = said.said_us - now_us
    if 0 < behind_us <= _TOGETHER_US:
        return None
    if levels != said.levels:
        return Notice("problem" if levels else "recovery", Said(levels, now_us))
    if not levels:
        return None
    if behind_us > 0:
        return Notice("repeat", Said(levels, now_us))
    repeats = (now_us - said.said_us + _EARLY_US) // DAY_US
    return Notice("repeat", said._replace(repeats=repeats)) if repeats > said.repeats else None
