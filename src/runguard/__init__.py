"""Put `runguard run` in front of a crontab command, and every window gets exactly one answer."""

__version__ = "0.1.0"
