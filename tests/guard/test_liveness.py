"""Whether a run that has no finish still lives."""

from __future__ import annotations

from pathlib import Path

from runguard.guard import liveness, runfile


def test_a_run_whose_file_is_locked_lives_whatever_boot_is_on_record(tmp_path: Path) -> None:
    work = runfile.create(str(tmp_path), "run")
    assert liveness.judge("run", 1, "another-boot", str(tmp_path)).state == liveness.ALIVE
    work.leave()
    found = liveness.judge("run", 1, "another-boot", str(tmp_path))
    assert (found.state, found.because) == (liveness.LOST, "the host restarted")
