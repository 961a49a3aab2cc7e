-- Checkpoints of the ledger, and what people have verified of it. Instants are UTC microseconds.

PRAGMA user_version = 3;

-- An index over the ledger's entries of this kind: seq is the entry, first_seq to last_seq what it names.
CREATE TABLE checkpoint (
    seq INTEGER PRIMARY KEY,
    first_seq BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    at_us BIGINT NOT NULL,
    list_sha256 TEXT NOT NULL CHECK (length(list_sha256) = 64),
    CHECK (first_seq <= last_seq AND last_seq < seq)
);

-- The detached signature of a checkpoint's line, as ssh-keygen writes it. It cannot stand in the line itself.
CREATE TABLE signature (
    seq INTEGER PRIMARY KEY REFERENCES checkpoint (seq),
    text TEXT NOT NULL
);

-- What became of telling a checkpoint to somebody outside; error: why it was not told.
CREATE TABLE anchored (
    seq INTEGER PRIMARY KEY REFERENCES checkpoint (seq),
    at_us BIGINT NOT NULL,
    error TEXT
);

-- When somebody verified the ledger, up to which entry, from which checkpoint on (0: all of it), and what was found.
CREATE TABLE verified (
    at_us BIGINT NOT NULL,
    since_seq BIGINT NOT NULL,
    upto_seq BIGINT NOT NULL,
    upto_hash TEXT NOT NULL,
    problems BIGINT NOT NULL
);

CREATE INDEX verified_at ON verified (at_us);
