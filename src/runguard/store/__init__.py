"""The durable record: a chained ledger, tables that index it, and a journal for when neither can be written."""
