-- What later entries say about cases, runs and code: corrections, holds, erasures, accesses, defects.

PRAGMA user_version = 4;

-- An index over the ledger's entries of these kinds: one row for each thing that an entry is about (store/bearings.py).
CREATE TABLE bearing (
    about TEXT NOT NULL CHECK (about IN ('case', 'run', 'entry', 'job', 'span', 'code', 'commit', 'erased')),
    which TEXT NOT NULL,
    seq BIGINT NOT NULL,
    kind TEXT NOT NULL,
    PRIMARY KEY (about, which, seq)
) WITHOUT ROWID;

CREATE INDEX bearing_of_entry ON bearing (seq);
CREATE INDEX bearing_of_kind ON bearing (kind, seq);
