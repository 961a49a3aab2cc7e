"""Which instant a local minute gets that does not exist (gap) or comes twice (fold)."""

from __future__ import annotations

from runguard.errors import ScheduleError
from runguard.record import NamedTuple

GAPS = ("after", "shift", "skip")
FOLDS = ("first", "second", "both")
# Preset → (gap, fold); `vixie` goes by job class.
_PRESETS = {
    "walk": ("skip", "both"),
    "systemd": ("skip", "first"),
    "quartz": ("skip", "second"),
    "shift": ("shift", "first"),
}
POLICIES = ("vixie", *_PRESETS)
_VIXIE_FIXED = ("after", "first")
_VIXIE_WILD = ("skip", "both")
# Vixie cron takes a jump of three hours or more forward, or of more than three back, for a corrected clock.
_VIXIE_LIMIT_S = 180 * 60


class Rule(NamedTuple):
    """A policy made definite for one schedule."""

    gap: str  # of GAPS
    fold: str  # of FOLDS
    skip_from_s: int | None = None  # a gap of this length or more is skipped
    repeat_beyond_s: int | None = None  # both occurrences are due where the clock went back by more than this


def rule(policy: str, gap: str | None, fold: str | None, *, wild: bool) -> Rule:
    """Return the rule of a preset for a job class.

    A given `gap` or `fold` replaces that half of the preset, with the limit that belongs to it.

    Raises ScheduleError where a word is unknown.
    """
    _check("policy", policy, POLICIES)
    preset_gap, preset_fold = _PRESETS.get(policy) or (_VIXIE_WILD if wild else _VIXIE_FIXED)
    limit_s = _VIXIE_LIMIT_S if policy == "vixie" else None
    if gap is not None:
        _check("gap", gap, GAPS)
    if fold is not None:
        _check("fold", fold, FOLDS)
    return Rule(
        gap=preset_gap if gap is None else gap,
        fold=preset_fold if fold is None else fold,
        skip_from_s=limit_s if gap is None else None,
        repeat_beyond_s=limit_s if fold is None else None,
    )


def _check(field: str, word: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise ScheduleError(word[:60], f"no such {field}; known: {' '.join(known)}", field=field)
