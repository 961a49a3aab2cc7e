"""The command line: parse, call, emit, exit status. Kept empty, because `run` imports `cli.fast` before the spawn."""
