"""From the text of a schedule to the windows that it expects: pure functions of values.

Text → `cron` → nominal minutes (`nominal`) → instants by `zone` and `policy` → `windows` → across edits, `revisions`.
Nothing here reads a clock, a file or the environment.
"""
