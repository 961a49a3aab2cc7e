"""A guard without bookkeeping: spawn and supervise one command as `run` does.

    drive.py OPTIONS COMMAND…      OPTIONS is JSON: fields of Plan, and `report` (where the result goes, as JSON),
                                   `runs` (a directory: with a run file in it), `limits` (head and tail)

Exits with the command's status, 128+N where signal N ended it, or the spawn error's.
"""

import json
import os
import sys

from runguard.errors import SpawnError
from runguard.guard import runfile
from runguard.guard.capture import Capture
from runguard.guard.descriptors import open_missing_stdio
from runguard.guard.outlet import say
from runguard.guard.process import Plan, spawn
from runguard.guard.signals import listen
from runguard.guard.supervise import supervise


def main() -> int:
    open_missing_stdio()
    signals = listen()
    options = json.loads(sys.argv[1])
    report = options.pop("report", None)
    runs = options.pop("runs", None)
    limits = options.pop("limits", (64 << 10, 1 << 20))
    own = runfile.create(runs, "run", head_limit=limits[0], tail_limit=limits[1]) if runs else None
    if report:
        options.setdefault("spool_dir", os.path.dirname(report))
    plan = Plan(tuple(sys.argv[2:]), dict(os.environ), inherit=(own.fd,) if own else (), **options)
    try:
        child = spawn(plan, signals)
    except SpawnError as error:
        say(f"runguard: {error}\n")
        return error.status
    if own:
        own.spawned(child.pid, merged=child.merged)
    capture = Capture(*limits)
    ended = supervise(child, plan, signals, capture, runfile=own)
    if own:
        own.remove()
    if report:
        kept = capture.kept()
        content = {
            **ended._asdict(),
            "stragglers": [each._asdict() for each in ended.stragglers],
            "survivors": [each._asdict() for each in ended.survivors],
            "merged": child.merged,
            "program": child.program,
            "stdout": capture.stream(1)._asdict(),
            "stderr": capture.stream(2)._asdict(),
            "head": kept.head.hex(),
            "tail": kept.tail.hex(),
            "kept_bytes": kept.kept_bytes,
            "omitted_bytes": kept.omitted_bytes,
            "modules": sorted(sys.modules),
        }
        with open(f"{report}.new", "w") as file:
            json.dump(content, file)
        os.rename(f"{report}.new", report)  # whoever waits for it finds it whole
    return 128 + ended.signal if ended.signal is not None else ended.exit_status or 0


status = main()
os._exit(status)  # a writer that nobody reads may be stuck for ever
