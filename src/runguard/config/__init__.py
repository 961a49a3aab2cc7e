"""Configuration files, and the settings of one start that come of them.

A mistake in a file never stops a job: `load` and `effective` return problems and raise nothing. Every other command
calls `strict.load`, which raises.
"""

from runguard.config.files import SYSTEM_FILE, File, Loaded, load
from runguard.config.merge import Origin, effective

__all__ = ["SYSTEM_FILE", "File", "Loaded", "Origin", "effective", "load"]
