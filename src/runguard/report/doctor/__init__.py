"""Everything that could go wrong here, checked now: one small function a check, each with what to type against it.

A check looks and changes nothing. Each gives one finding at least, a sentence that names the thing and the place.
"""
