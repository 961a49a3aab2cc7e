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

-- A revision without an expression expects nothing: the job is retired.
CREATE TABLE revision (
    job TEXT NOT NULL REFERENCES job (job),
    number INTEGER NOT NULL CHECK (number > 0),
    expression TEXT,
    zone TEXT,
    policy TEXT,
    gap TEXT CHECK (gap IN ('after', 'shift', 'skip')),
    fold TEXT CHECK (fold IN ('first', 'second', 'both')),
    after_us BIGINT NOT NULL,
    opened_us BIGINT NOT NULL,
    seq BIGINT NOT NULL UNIQUE,
    PRIMARY KEY (job, number),
    CHECK ((expression IS NULL) = (zone IS NULL) AND (expression IS NULL) = (policy IS NULL)),
    CHECK (expression IS NOT NULL OR (gap IS NULL AND fold IS NULL))
);

-- Starts and refused starts. finish_seq: the entry that ended it; late_seq: the late finish of a run taken for lost.
-- covers: the windows (first <= due <= last) that a catch-up answers besides its own. answered_due_us: the due, unless
-- the start was refused; a column of its own so that an index alone tells which dues are answered.
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
    suspect TEXT,
    covers_first_us BIGINT,
    covers_last_us BIGINT,
    covers_count BIGINT CHECK (covers_count > 0),
    answered_due_us BIGINT,
    CHECK ((window_key IS NULL) = (due_us IS NULL) AND (window_key IS NULL) = (window_start_us IS NULL)),
    CHECK (window_start_us < due_us),
    CHECK ((finish_seq IS NULL) = (outcome IN ('running', 'refused'))),
    CHECK (outcome = 'lost' OR late_seq IS NULL),
    CHECK (outcome <> 'refused' OR why IS NOT NULL),
    CHECK ((outcome = 'refused') = (attempt IS NULL)),
    CHECK (coalesce(answered_due_us, 0) = CASE WHEN outcome = 'refused' THEN 0 ELSE coalesce(due_us, 0) END),
    CHECK (outcome = 'succeeded' OR suspect IS NULL),
    CHECK ((covers_first_us IS NULL) = (covers_last_us IS NULL) AND (covers_first_us IS NULL) = (covers_count IS NULL)),
    CHECK (covers_first_us <= covers_last_us),
    CHECK (covers_first_us IS NULL OR (outcome <> 'refused' AND due_us IS NOT NULL))
);

CREATE INDEX run_of_window ON run (job, window_key, start_seq);
CREATE INDEX run_of_job ON run (job, start_seq);
CREATE INDEX run_answered ON run (job, answered_due_us) WHERE answered_due_us IS NOT NULL;
CREATE INDEX run_refused ON run (job, due_us) WHERE outcome = 'refused' AND due_us IS NOT NULL;
CREATE INDEX run_covers ON run (job, covers_last_us, covers_first_us) WHERE covers_first_us IS NOT NULL;
CREATE INDEX run_running ON run (job) WHERE outcome = 'running';
CREATE INDEX run_started ON run (started_us);

-- A person answered for a window (window_key), or for every due in (since_us, until_us]; withdrawn: no longer.
-- The latest row that matches a window counts.
CREATE TABLE waiver (
    seq INTEGER PRIMARY KEY,
    job TEXT NOT NULL,
    window_key TEXT,
    since_us BIGINT,
    until_us BIGINT,
    withdrawn INTEGER NOT NULL CHECK (withdrawn IN (0, 1)),
    reason TEXT,
    host TEXT NOT NULL,
    actor TEXT,
    at_us BIGINT NOT NULL,
    CHECK ((window_key IS NULL) = (since_us IS NOT NULL) AND (since_us IS NULL) = (until_us IS NULL)),
    CHECK (since_us < until_us),
    CHECK (withdrawn = 1 OR reason IS NOT NULL)
);

CREATE INDEX waiver_of_window ON waiver (job, window_key, seq);
CREATE INDEX waiver_of_span ON waiver (job, until_us, since_us) WHERE window_key IS NULL;

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
