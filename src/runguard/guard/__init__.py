"""One guarded run: lock, decision, the command and its output, and the order of steps."""
