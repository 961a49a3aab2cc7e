-- Lawful removal: what redact and prune take out, and what then vouches for the rest. Instants are UTC microseconds.

PRAGMA user_version = 5;

-- Lifts the triggers below for one transaction. Its one row names the entry that says what is removed, which is the last
-- of the ledger; the transaction removes the row again, and one that stayed would be void with the next entry. A trigger
-- that is dropped and made anew would change the schema under everybody who has the store open.
CREATE TABLE lifted (seq BIGINT NOT NULL);

DROP TRIGGER ledger_is_never_deleted;
CREATE TRIGGER ledger_is_never_deleted BEFORE DELETE ON ledger
WHEN NOT EXISTS (SELECT 1 FROM lifted WHERE seq = (SELECT max(seq) FROM ledger))
BEGIN
    SELECT RAISE(ABORT, 'nothing is deleted from the ledger');
END;

DROP TRIGGER item_is_never_deleted;
CREATE TRIGGER item_is_never_deleted BEFORE DELETE ON item
WHEN NOT EXISTS (SELECT 1 FROM lifted WHERE seq = (SELECT max(seq) FROM ledger))
BEGIN
    SELECT RAISE(ABORT, 'a case entry is never deleted');
END;

DROP TRIGGER item_list_is_never_deleted;
CREATE TRIGGER item_list_is_never_deleted BEFORE DELETE ON item_list
WHEN NOT EXISTS (SELECT 1 FROM lifted WHERE seq = (SELECT max(seq) FROM ledger))
BEGIN
    SELECT RAISE(ABORT, 'a list of case entries is never deleted');
END;

DROP TRIGGER item_rejected_is_never_edited;
CREATE TRIGGER item_rejected_is_never_edited BEFORE UPDATE ON item_rejected
WHEN NOT EXISTS (SELECT 1 FROM lifted WHERE seq = (SELECT max(seq) FROM ledger))
BEGIN
    SELECT RAISE(ABORT, 'a rejected line is never edited');
END;

DROP TRIGGER item_rejected_is_never_deleted;
CREATE TRIGGER item_rejected_is_never_deleted BEFORE DELETE ON item_rejected
WHEN NOT EXISTS (SELECT 1 FROM lifted WHERE seq = (SELECT max(seq) FROM ledger))
BEGIN
    SELECT RAISE(ABORT, 'a rejected line is never deleted');
END;

-- With what a redact entry spells the case that it is about: HMAC-SHA256 under a secret that stands here alone. Whoever has
-- but lines of the ledger cannot try ids; the store can still answer.
CREATE TABLE erasure (
    seq INTEGER PRIMARY KEY,
    secret BLOB NOT NULL CHECK (typeof(secret) = 'blob' AND length(secret) = 32)
);

-- An index over the entries of kind prune. The two numbers, both included: numbers of case entries (item.id), or of
-- entries, whatever of them is no longer there; with entries, verification starts at the checkpoint.
CREATE TABLE pruned (
    seq INTEGER PRIMARY KEY,
    what TEXT NOT NULL CHECK (what IN ('cases', 'entries')),
    before_us BIGINT NOT NULL,
    first_number BIGINT NOT NULL,
    last_number BIGINT NOT NULL,
    checkpoint_seq BIGINT,
    CHECK (first_number <= last_number),
    CHECK ((checkpoint_seq IS NULL) = (what = 'cases'))
);

-- The SHA-256 of all lines that a checkpoint names, one after another, where only some of these lines are still there.
CREATE TABLE entry_list (
    checkpoint_seq INTEGER PRIMARY KEY REFERENCES checkpoint (seq),
    digests BLOB NOT NULL CHECK (typeof(digests) = 'blob' AND length(digests) % 32 = 0)
);

-- What expects windows asks for the newest of these.
CREATE INDEX pruned_entries ON pruned (before_us) WHERE what = 'entries';
