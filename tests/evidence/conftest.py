"""Entries of the ledger for the tests of evidence."""

from entries import finished as finished
from entries import refused as refused
from entries import started as started
