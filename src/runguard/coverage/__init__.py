"""Expected windows against what is on record: exactly one verdict for each, and the windows nobody answered.

Pure functions: what is on record comes in as values, or as an object to ask (`onrecord.Record`).
"""
