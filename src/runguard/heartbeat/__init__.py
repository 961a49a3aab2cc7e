"""Heartbeats: what a monitor is told about a run, and how it gets there without touching the run."""
