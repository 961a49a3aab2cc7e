"""Fixtures that more than one room uses."""
