"""Crontabs: read without loss, judged, wrapped and unwrapped.

Bytes → `parse` → lines → `lint` (what of them lies) or `wrap` (runguard put in front, and taken off again). Pure but
for `files`, which reads and replaces tables, and `host`, which knows this machine's daemon.
"""
