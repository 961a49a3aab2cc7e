"""Children of ours that belong to no command: helpers that we have started.

A guard is also the parent of what commands leave behind, and must tell the two apart.
"""

HELPERS: set[int] = set()  # pids, from their start until they have been reaped
