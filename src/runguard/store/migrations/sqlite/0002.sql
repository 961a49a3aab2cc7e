-- What jobs say about their cases. The record lines are the record, and the ledger holds the hash of the list that
-- names them all (evidence/lists.py); what else stands here can be derived from them again.

PRAGMA user_version = 2;

-- One case entry: its record line, byte for byte. id: start_seq * 2097152 + seq, so that the entries of a run lie side
-- by side in the order of its file. said: the result of a result, else intent or note. file_offset: of the job's line
-- in its file. A record that was lawfully removed has no row; its hash stays in item_list.
CREATE TABLE item (
    id INTEGER PRIMARY KEY,
    start_seq BIGINT GENERATED ALWAYS AS (id >> 21) VIRTUAL,
    seq BIGINT GENERATED ALWAYS AS (id & 2097151) VIRTUAL,
    case_id TEXT NOT NULL,
    said TEXT NOT NULL CHECK (said IN ('intent', 'note', 'done', 'no_action', 'failed', 'skipped')),
    file_offset BIGINT NOT NULL,
    received_us BIGINT NOT NULL,
    line BLOB NOT NULL CHECK (typeof(line) = 'blob')
);

-- By case, in two parts. One index over all entries would touch a page of its own for nearly each of them: 12,000
-- entries a second into a year's store. So the first thousand of a run are found by their case; the rest by run and
-- case, which touches few pages, and there are few runs that are so long (item_run_long).
CREATE INDEX item_of_case ON item (case_id) WHERE seq <= 1000;
CREATE INDEX item_of_run ON item (start_seq, case_id) WHERE seq > 1000;

CREATE TRIGGER item_is_never_edited BEFORE UPDATE ON item
BEGIN
    SELECT RAISE(ABORT, 'a case entry is never edited');
END;

CREATE TRIGGER item_is_never_deleted BEFORE DELETE ON item
BEGIN
    SELECT RAISE(ABORT, 'a case entry is never deleted');
END;

-- The SHA-256 of up to 100 record lines, one after another; id: of the first of them. Complete groups come with their
-- last record, the rest with the run's end.
CREATE TABLE item_list (
    id INTEGER PRIMARY KEY,
    digests BLOB NOT NULL CHECK (typeof(digests) = 'blob' AND length(digests) % 32 = 0)
);

CREATE TRIGGER item_list_is_never_edited BEFORE UPDATE ON item_list
BEGIN
    SELECT RAISE(ABORT, 'a list of case entries is never edited');
END;

CREATE TRIGGER item_list_is_never_deleted BEFORE DELETE ON item_list
BEGIN
    SELECT RAISE(ABORT, 'a list of case entries is never deleted');
END;

-- A piece of a run's file that is no entry: one line, or many bad ones in a row. sha256: of all its bytes, newlines
-- included; head: the first of them.
CREATE TABLE item_rejected (
    start_seq BIGINT NOT NULL,
    file_offset BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    lines BIGINT NOT NULL CHECK (lines > 0),
    sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
    head BLOB NOT NULL,
    why TEXT NOT NULL,
    received_us BIGINT NOT NULL,
    PRIMARY KEY (start_seq, file_offset)
);

CREATE TRIGGER item_rejected_is_never_edited BEFORE UPDATE ON item_rejected
BEGIN
    SELECT RAISE(ABORT, 'a rejected line is never edited');
END;

CREATE TRIGGER item_rejected_is_never_deleted BEFORE DELETE ON item_rejected
BEGIN
    SELECT RAISE(ABORT, 'a rejected line is never deleted');
END;

-- Intents without a result, as of now: what is uncertain. key: '' where the entry has none.
CREATE TABLE item_open (
    start_seq BIGINT NOT NULL,
    case_id TEXT NOT NULL,
    key TEXT NOT NULL,
    id BIGINT NOT NULL,
    PRIMARY KEY (start_seq, case_id, key)
) WITHOUT ROWID;

-- How far the file of a run is on record, and what its entries come to so far. shift: where the file's first byte
-- counts, other than 0 only once a job has truncated it. told: how many entries the ledger has named. complete: nothing
-- more will come.
CREATE TABLE item_run (
    start_seq INTEGER PRIMARY KEY,
    file_offset BIGINT NOT NULL,
    shift BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    cases BIGINT NOT NULL,
    done BIGINT NOT NULL,
    no_action BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    unannounced BIGINT NOT NULL,
    rejected BIGINT NOT NULL,
    expected BIGINT,
    beyond_bytes BIGINT NOT NULL,
    told BIGINT NOT NULL,
    complete INTEGER NOT NULL CHECK (complete IN (0, 1))
);

CREATE INDEX item_run_long ON item_run (start_seq) WHERE entries > 1000;
