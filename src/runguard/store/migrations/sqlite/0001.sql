-- The ledger is the record; the other tables are an index over it that can be derived again from its lines
-- (output and pings excepted: they are kept beside it). Instants are UTC microseconds.

PRAGMA application_id = 1919382116;  -- 'rgrd'
PRAGMA user_version = 1;

CREATE TABLE ledger (
    seq INTEGER PRIMARY KEY,
    line BLOB NOT NULL CHECK (typeof(line) = 'blob')
);

CREATE TRIGGER ledger_has_no_gaps BEFORE INSERT ON ledger
WHEN NEW.seq <> coalesce((SELECT max(seq) FROM ledger), 0) + 1
BEGIN
    SELECT RAISE(ABORT, 'the ledger has no gaps and nothing is written twice');
END;

CREATE TRIGGER ledger_is_never_edited BEFORE UPDATE ON ledger
BEGIN
    SELECT RAISE(ABORT, 'the ledger is never edited');
END;

CREATE TRIGGER ledger_is_never_deleted BEFORE DELETE ON ledger
BEGIN
    SELECT RAISE(ABORT, 'nothing is deleted from the ledger');
END;

CREATE TABLE job (
    job TEXT PRIMARY KEY,
    registered_us BIGINT NOT NULL,
    registered_seq BIGINT NOT NULL
);

CREATE TABLE revision (
    job TEXT NOT NULL REFERENCES job (job),
    number INTEGER NOT NULL CHECK (number > 0),
    expression TEXT NOT NULL,
    zone TEXT NOT NULL,
    policy TEXT NOT NULL,
    gap TEXT CHECK (gap IN ('after', 'shift', 'skip')),
    fold TEXT CHECK (fold IN ('first', 'second', 'both')),
    after_us BIGINT NOT NULL,
    opened_us BIGINT NOT NULL,
    seq BIGINT NOT NULL UNIQUE,
    PRIMARY KEY (job, number)
);

-- Starts and refused starts. finish_seq: the entry that ended it; late_seq: the late finish of a run taken for lost.
CREATE TABLE run (
    start_seq INTEGER PRIMARY KEY,
    finish_seq BIGINT,
    late_seq BIGINT,
    run_id TEXT NOT NULL UNIQUE,
    number BIGINT NOT NULL UNIQUE CHECK (number > 0),
    job TEXT NOT NULL,
    revision INTEGER,
    window_key TEXT,
    window_start_us BIGINT,
    due_us BIGINT,
    label TEXT,
    nominal TEXT,
    zone TEXT,
    attempt INTEGER CHECK (attempt > 0),
    trigger TEXT NOT NULL CHECK (trigger IN ('schedule', 'catch-up', 'rerun', 'manual')),
    reason TEXT,
    outcome TEXT NOT NULL CHECK (outcome IN ('running', 'succeeded', 'failed', 'timed_out', 'killed', 'cancelled',
        'lost', 'superseded', 'refused')),
    exit_status INTEGER,
    returned INTEGER,
    signal INTEGER,
    why TEXT,
    started_us BIGINT NOT NULL,
    finished_us BIGINT,
    duration_us BIGINT,
    host TEXT NOT NULL,
    boot_id TEXT,
    guard_pid BIGINT,
    actor TEXT,
    supersedes TEXT,
    superseded_by TEXT,
    CHECK ((window_key IS NULL) = (due_us IS NULL) AND (window_key IS NULL) = (window_start_us IS NULL)),
    CHECK (window_start_us < due_us),
    CHECK ((finish_seq IS NULL) = (outcome IN ('running', 'refused'))),
    CHECK (outcome = 'lost' OR late_seq IS NULL),
    CHECK (outcome <> 'refused' OR why IS NOT NULL),
    CHECK (outcome = 'refused' OR attempt IS NOT NULL)
);

CREATE INDEX run_of_window ON run (job, window_key, start_seq);
CREATE INDEX run_of_job ON run (job, start_seq);
CREATE INDEX run_answered ON run (job, due_us) WHERE outcome <> 'refused' AND due_us IS NOT NULL;
CREATE INDEX run_running ON run (job) WHERE outcome = 'running';
CREATE INDEX run_started ON run (started_us);

CREATE TABLE output (
    run_id TEXT PRIMARY KEY REFERENCES run (run_id),
    head BLOB NOT NULL,
    tail BLOB NOT NULL
);

CREATE TABLE ping (
    run_id TEXT NOT NULL REFERENCES run (run_id),
    n INTEGER NOT NULL,
    event TEXT NOT NULL,
    style TEXT NOT NULL,
    target TEXT NOT NULL,
    verdict TEXT NOT NULL,
    http_status INTEGER,
    tries INTEGER NOT NULL,
    sent_us BIGINT,
    duration_us BIGINT,
    error TEXT,
    PRIMARY KEY (run_id, n)
);
