"""Run commands one after another and tell what each took. A process of its own, and a small one.

The kernel counts the memory of whoever starts a process into that process's peak, so this must be smaller than
anything that it measures; it imports nothing but what an interpreter has at its start.

Read from stdin (marshal): a list of (argv, environment). Written to stdout: a list of Sample, as tuples.
"""

import marshal
import os
import sys
import time


def main() -> None:
    """Run what stdin asks for."""
    taken = [run(argv, environ) for argv, environ in marshal.loads(sys.stdin.buffer.read())]
    sys.stdout.buffer.write(marshal.dumps(taken))


def run(argv: "list[str]", environ: "dict[str, str]") -> "tuple[int, float, float, int, int]":
    """Return (status, wall s, CPU s of the whole tree, peak KiB of its largest process, ns since 1970 at the start)."""
    actions = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1)]
    at_ns = time.time_ns()
    began_s = time.perf_counter()
    pid = os.posix_spawnp(argv[0], argv, environ, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    wall_s = time.perf_counter() - began_s
    return os.waitstatus_to_exitcode(status), wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, at_ns


if __name__ == "__main__":
    main()
