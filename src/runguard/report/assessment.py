"""How bad it is with the jobs of a store: what `status` and `check` tell, and whoever else has to judge it."""

from __future__ import annotations

from runguard import config
from runguard.coverage.levels import Limits, assess
from runguard.report.standing import known, look, standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runguard.config import Loaded
    from runguard.coverage.levels import Assessment
    from runguard.paths import Places
    from runguard.store.reads import Reader


def assessments(
    environ: Mapping[str, str],
    loaded: Loaded,
    store: Reader | None,
    places: Places,
    now_us: int,
    jobs: Sequence[str] | None = None,
) -> list[Assessment]:
    """Return how `jobs` stand and how bad that is; by default every job on record or in the configuration, by name.

    `store` is None where nothing has ever been recorded. Nothing is written. Raises StoreError, and ConfigError for a
    zone or a schedule that is none.
    """
    around = look(environ, loaded, store, places, now_us)
    found = []
    for job in known(loaded, store) if jobs is None else jobs:
        settings, _ = config.effective({}, environ, loaded, job)
        limits = Limits(settings.alarm_after, settings.max_age_s, settings.on_lost == "hold")
        found.append(assess(standing(store, job, settings, around), limits))
    return found
