-- Every statement that runguard sends, in the common dialect of SQLite and PostgreSQL. Instants are UTC microseconds.
-- A parameter is :name; one that may be NULL is cast where it is compared, because PostgreSQL asks for its type.

-- name: run_columns
    start_seq, finish_seq, late_seq, run_id, number, job, revision,
    window_key, window_start_us, due_us, label, nominal, zone,
    attempt, trigger, reason, outcome, exit_status, returned, signal, why,
    started_us, finished_us, duration_us, host, boot_id, guard_pid, actor, supersedes, superseded_by,
    suspect, covers_first_us, covers_last_us, covers_count

-- name: head
-- The last line of the ledger.
SELECT seq, line FROM ledger ORDER BY seq DESC LIMIT 1

-- name: line_at
-- One line of the ledger.
SELECT line FROM ledger WHERE seq = :seq

-- name: last_boot
-- Which boot of which host the last start belongs to.
SELECT boot_id, host FROM run ORDER BY start_seq DESC LIMIT 1

-- name: lines_after
-- A page of the ledger's lines, by their numbers.
SELECT seq, line FROM ledger WHERE seq > :seq ORDER BY seq LIMIT :page

-- name: lines_before
-- A page of the ledger's lines, backwards.
SELECT seq, line FROM ledger WHERE seq < :seq ORDER BY seq DESC LIMIT :page

-- name: salvage_line
-- Take a line over from a damaged store, in any order, as long as none has its number.
INSERT INTO ledger (seq, line) VALUES (:seq, :line) ON CONFLICT (seq) DO NOTHING

-- name: discard_line
-- Do without a line of a damaged store that is not what was written.
DELETE FROM ledger WHERE seq = :seq

-- name: checkpointed
-- Up to which entry checkpoints reach, and when the last was made, or the first entry, or NULL.
SELECT
    coalesce((SELECT last_seq FROM checkpoint ORDER BY seq DESC LIMIT 1), 0),
    coalesce(
        (SELECT at_us FROM checkpoint ORDER BY seq DESC LIMIT 1),
        (SELECT started_us FROM run ORDER BY start_seq LIMIT 1)
    )

-- name: last_checkpoint
-- The line of the last checkpoint.
SELECT seq, line FROM ledger WHERE seq = (SELECT max(seq) FROM checkpoint)

-- name: insert_checkpoint
-- Index a checkpoint.
INSERT INTO checkpoint (seq, first_seq, last_seq, at_us, list_sha256)
VALUES (:seq, :first_seq, :last_seq, :at_us, :list_sha256)

-- name: signature
-- The signature of a checkpoint.
SELECT text FROM signature WHERE seq = :seq

-- name: insert_signature
-- Keep the signature of a checkpoint's line.
INSERT INTO signature (seq, text) VALUES (:seq, :text)

-- name: insert_anchored
-- Keep what became of telling a checkpoint to somebody outside.
INSERT INTO anchored (seq, at_us, error) VALUES (:seq, :at_us, :error)

-- name: last_anchored
-- What became of telling the last checkpoint that was told to somebody outside.
SELECT seq, at_us, error FROM anchored ORDER BY seq DESC LIMIT 1

-- name: outputs_of
-- The kept output of the runs that were started by some entries, and which entries ended them.
SELECT run.finish_seq, output.head, output.tail FROM run LEFT JOIN output ON output.run_id = run.run_id
WHERE run.start_seq BETWEEN :first_seq AND :last_seq AND run.finish_seq IS NOT NULL

-- name: signatures
-- The signatures of the checkpoints after an entry, with their lines.
SELECT checkpoint.seq, ledger.line, signature.text FROM checkpoint JOIN ledger ON ledger.seq = checkpoint.seq
LEFT JOIN signature ON signature.seq = checkpoint.seq
WHERE checkpoint.seq > :seq ORDER BY checkpoint.seq

-- name: last_verified
-- The last time that somebody verified the ledger and found nothing.
SELECT at_us, since_seq, upto_seq, upto_hash FROM verified WHERE problems = 0 ORDER BY at_us DESC LIMIT 1

-- name: verified_lately
-- When somebody verified the ledger last, or the first start where nobody has, and how many problems were found.
SELECT
    coalesce((SELECT max(at_us) FROM verified), (SELECT started_us FROM run ORDER BY start_seq LIMIT 1)),
    coalesce((SELECT problems FROM verified ORDER BY at_us DESC LIMIT 1), 0)

-- name: insert_verified
-- Note that the ledger was verified.
INSERT INTO verified (at_us, since_seq, upto_seq, upto_hash, problems)
VALUES (:at_us, :since_seq, :upto_seq, :upto_hash, :problems)

-- name: append_line
-- Add a line to the ledger. A trigger refuses any number but the next.
INSERT INTO ledger (seq, line) VALUES (:seq, :line)

-- name: insert_job
-- Register a job; one that is known already stays as it is.
INSERT INTO job (job, registered_us, registered_seq) VALUES (:job, :registered_us, :registered_seq)
ON CONFLICT (job) DO NOTHING

-- name: insert_revision
-- Open a revision of a job's schedule: it expects the dues after after_us; without an expression it expects nothing.
INSERT INTO revision (job, number, expression, zone, policy, gap, fold, after_us, opened_us, seq)
VALUES (:job, :number, :expression, :zone, :policy, :gap, :fold, :after_us, :opened_us, :seq)

-- name: insert_run
-- Record a start, or (outcome 'refused') a start that was refused.
INSERT INTO run (
    start_seq, run_id, number, job, revision, window_key, window_start_us, due_us, label, nominal, zone,
    attempt, trigger, reason, outcome, returned, why, started_us, host, boot_id, guard_pid, actor, supersedes,
    covers_first_us, covers_last_us, covers_count, answered_due_us
) VALUES (
    :start_seq, :run_id, :number, :job, :revision, :window_key, :window_start_us, :due_us, :label, :nominal, :zone,
    :attempt, :trigger, :reason, :outcome, :returned, :why, :started_us, :host, :boot_id, :guard_pid, :actor,
    :supersedes, :covers_first_us, :covers_last_us, :covers_count, :answered_due_us
)

-- name: insert_waiver
-- A person answers for a window or for a span of dues, or takes that back.
INSERT INTO waiver (seq, job, window_key, since_us, until_us, withdrawn, reason, host, actor, at_us)
VALUES (:seq, :job, :window_key, :since_us, :until_us, :withdrawn, :reason, :host, :actor, :at_us)

-- name: supersede_run
-- Link a run to the one that was started to replace it. Its outcome stays.
UPDATE run SET superseded_by = :run_id WHERE run_id = :supersedes

-- name: finish_run
-- Record the end of a run that has none. Must change exactly one row.
UPDATE run SET
    finish_seq = :finish_seq, outcome = :outcome, exit_status = :exit_status, returned = :returned, signal = :signal,
    why = :why, finished_us = :finished_us, duration_us = :duration_us, suspect = :suspect
WHERE run_id = :run_id AND finish_seq IS NULL AND outcome = 'running'

-- name: finish_lost_run
-- Note the one late end of a run that was taken for lost; its outcome stays. Must change exactly one row.
UPDATE run SET late_seq = :late_seq WHERE run_id = :run_id AND outcome = 'lost' AND late_seq IS NULL

-- name: latest
-- The latest start for a window and how many there were; where it has none of its own, the latest that covers it.
SELECT start_seq, run_id, number, outcome,
    (SELECT count(1) FROM run WHERE job = :job AND window_key = :window_key AND outcome <> 'refused'), host
FROM run
WHERE start_seq = coalesce(
    (SELECT max(start_seq) FROM run WHERE job = :job AND window_key = :window_key AND outcome <> 'refused'),
    (SELECT max(start_seq) FROM run
        WHERE job = :job AND covers_first_us IS NOT NULL AND covers_first_us <= :due_us AND covers_last_us >= :due_us)
)

-- name: latest_waiver
-- The latest waiver or withdrawal that matches a window.
SELECT seq, withdrawn, host FROM waiver
WHERE seq = (
    SELECT max(answer.seq) FROM (
        SELECT max(seq) AS seq FROM waiver WHERE job = :job AND window_key = :window_key
        UNION ALL
        SELECT max(seq) AS seq FROM waiver
        WHERE job = :job AND window_key IS NULL AND since_us < :due_us AND until_us >= :due_us
    ) AS answer
)

-- name: running
-- The runs of a job without a finish, oldest first.
SELECT /*run_columns*/ FROM run WHERE job = :job AND outcome = 'running' ORDER BY start_seq

-- name: last_started
-- The run of a job that was started last; a refused start is none.
SELECT /*run_columns*/ FROM run
WHERE job = :job AND outcome <> 'refused'
ORDER BY start_seq DESC LIMIT 1

-- name: last_ended
-- The run of a job that was started last among those that came to an end.
SELECT /*run_columns*/ FROM run
WHERE job = :job AND outcome NOT IN ('refused', 'running')
ORDER BY start_seq DESC LIMIT 1

-- name: last_successes
-- The successes of a job that were started last, newest first.
SELECT start_seq, run_id, number, finished_us, due_us, duration_us, suspect FROM run
WHERE job = :job AND outcome = 'succeeded' AND finished_us IS NOT NULL
ORDER BY start_seq DESC LIMIT :page

-- name: failures_since
-- How many runs of a job were started after an entry and came to an end that is no success.
SELECT count(1) FROM run
WHERE job = :job AND start_seq > :seq AND outcome NOT IN ('refused', 'running', 'succeeded')

-- name: refusals_since
-- How many starts of a job were refused after an entry although their window was open, the instant of the first and
-- the entry of the last.
SELECT count(1), min(started_us), max(start_seq) FROM run
WHERE job = :job AND start_seq > :seq AND outcome = 'refused' AND why NOT IN ('duplicate', 'off-schedule')
    AND NOT (why = 'claimed' AND returned = 0)

-- name: run_at
-- The run or refusal whose entry this is.
SELECT /*run_columns*/ FROM run WHERE start_seq = :seq

-- name: all_running
-- Every run without a finish, oldest first.
SELECT /*run_columns*/ FROM run WHERE outcome = 'running' ORDER BY start_seq

-- name: registered_at
-- When a job became known.
SELECT registered_us FROM job WHERE job = :job

-- name: registered
-- Whether a job is known.
SELECT registered_seq FROM job WHERE job = :job

-- name: revisions
-- The revisions of a job's schedule, oldest first.
SELECT number, expression, zone, policy, gap, fold, after_us FROM revision WHERE job = :job ORDER BY number

-- name: last_revised
-- When the latest revision of a job was opened.
SELECT opened_us FROM revision WHERE job = :job ORDER BY number DESC LIMIT 1

-- name: coverage
-- Every start, refused ones too, with a due in (after_us, until_us] or covering one there, by sequence.
SELECT run_id, number, window_key, due_us, outcome, why, start_seq, covers_first_us, covers_last_us, suspect,
    guard_pid, boot_id, exit_status, attempt, window_start_us, label, nominal
FROM run
WHERE start_seq IN (
    SELECT start_seq FROM run
    WHERE job = :job AND answered_due_us > :after_us AND answered_due_us <= :until_us
    UNION ALL
    SELECT start_seq FROM run
    WHERE job = :job AND outcome = 'refused' AND due_us IS NOT NULL AND due_us > :after_us AND due_us <= :until_us
    UNION ALL
    SELECT start_seq FROM run
    WHERE job = :job AND covers_first_us IS NOT NULL AND covers_first_us <= :until_us AND covers_last_us > :after_us
)
ORDER BY start_seq

-- name: refusals
-- The refused starts with a due in (after_us, until_us], by due.
SELECT due_us, window_key, number, why FROM run
WHERE job = :job AND outcome = 'refused' AND due_us IS NOT NULL AND due_us > :after_us AND due_us <= :until_us
ORDER BY due_us, start_seq

-- name: answered_dues
-- The dues in (after_us, until_us] that some start was let run for.
SELECT DISTINCT answered_due_us FROM run
WHERE job = :job AND answered_due_us > :after_us AND answered_due_us <= :until_us
ORDER BY answered_due_us

-- name: key_answered
-- Whether some start was let run for the window with this key.
SELECT 1 FROM run WHERE job = :job AND window_key = :window_key AND outcome <> 'refused' LIMIT 1

-- name: covers
-- The spans of dues that catch-ups of a job cover, of those that reach into (after_us, until_us].
SELECT covers_first_us, covers_last_us, number FROM run
WHERE job = :job AND covers_first_us IS NOT NULL AND covers_first_us <= :until_us AND covers_last_us > :after_us
ORDER BY start_seq

-- name: waivers
-- A job's waivers and their withdrawals by sequence: those of one window, and those of spans that reach into
-- (after_us, until_us].
SELECT seq, window_key, since_us, until_us, withdrawn, reason, actor, at_us, host FROM waiver
WHERE job = :job AND (window_key IS NOT NULL OR (since_us < :until_us AND until_us > :after_us))
ORDER BY seq

-- name: retired
-- The number of the latest revision of a job, if it expects nothing.
SELECT number FROM (
    SELECT number, expression FROM revision WHERE job = :job ORDER BY number DESC LIMIT 1
) AS latest
WHERE expression IS NULL

-- name: last_answered_due
-- The greatest due that some start was let run for.
SELECT answered_due_us FROM run
WHERE job = :job AND answered_due_us IS NOT NULL
ORDER BY answered_due_us DESC LIMIT 1

-- name: last_finished_due
-- The due of the run that was started last among those with a window that came to an end.
SELECT due_us FROM run
WHERE job = :job AND outcome NOT IN ('refused', 'running', 'lost') AND due_us IS NOT NULL
ORDER BY start_seq DESC LIMIT 1

-- name: last_number
-- The highest short number given so far.
SELECT max(number) FROM run

-- name: jobs
-- Every known job by name: one step of the index per job, however many runs there are.
WITH RECURSIVE seen (job) AS (
    SELECT min(job) FROM run
    UNION ALL
    SELECT (SELECT min(run.job) FROM run WHERE run.job > seen.job) FROM seen WHERE seen.job IS NOT NULL
)
SELECT job FROM seen WHERE job IS NOT NULL
UNION
SELECT job FROM job
ORDER BY job

-- name: history_span
-- The first and last start within [since_us, until_us): the bounds that the pages of a history stay in.
SELECT min(start_seq), max(start_seq) FROM run WHERE started_us >= :since_us AND started_us < :until_us

-- name: history
-- A page of runs of all jobs, newest first.
SELECT /*run_columns*/ FROM run
WHERE start_seq < :before AND start_seq >= :floor
    AND +started_us >= :since_us AND +started_us < :until_us
    AND (CAST(:outcome AS TEXT) IS NULL OR outcome = :outcome)
    AND (CAST(:window_key AS TEXT) IS NULL OR window_key = :window_key)
ORDER BY start_seq DESC LIMIT :page

-- name: history_of_job
-- A page of a job's runs, newest first.
SELECT /*run_columns*/ FROM run
WHERE job = :job AND start_seq < :before AND start_seq >= :floor
    AND +started_us >= :since_us AND +started_us < :until_us
    AND (CAST(:outcome AS TEXT) IS NULL OR outcome = :outcome)
ORDER BY start_seq DESC LIMIT :page

-- name: history_of_window
-- A page of the runs of one window of a job, newest first.
SELECT /*run_columns*/ FROM run
WHERE job = :job AND window_key = :window_key AND start_seq < :before AND start_seq >= :floor
    AND +started_us >= :since_us AND +started_us < :until_us
    AND (CAST(:outcome AS TEXT) IS NULL OR outcome = :outcome)
ORDER BY start_seq DESC LIMIT :page

-- name: run_by_id
-- One run by its whole id.
SELECT /*run_columns*/ FROM run WHERE run_id = :run_id

-- name: run_by_number
-- One run by its short number.
SELECT /*run_columns*/ FROM run WHERE number = :number

-- name: runs_by_prefix
-- The first runs whose id lies in [first, beyond).
SELECT /*run_columns*/ FROM run WHERE run_id >= :first AND run_id < :beyond ORDER BY run_id LIMIT :page

-- name: last_run
-- The run or refusal that was recorded last.
SELECT /*run_columns*/ FROM run ORDER BY start_seq DESC LIMIT 1

-- name: insert_output
-- Keep the head and the tail of a run's output.
INSERT INTO output (run_id, head, tail) VALUES (:run_id, :head, :tail)

-- name: output
-- The kept output of a run.
SELECT head, tail FROM output WHERE run_id = :run_id

-- name: last_ping
-- How many pings a run has on record.
SELECT max(n) FROM ping WHERE run_id = :run_id

-- name: insert_ping
-- Record what became of one ping.
INSERT INTO ping (run_id, n, event, style, target, verdict, http_status, tries, sent_us, duration_us, error)
VALUES (:run_id, :n, :event, :style, :target, :verdict, :http_status, :tries, :sent_us, :duration_us, :error)

-- name: last_delivered
-- When a monitor last took a ping of a job.
SELECT max(sent_us) FROM ping
WHERE verdict = 'accepted' AND run_id IN (
    SELECT run_id FROM run WHERE job = :job AND outcome <> 'refused' ORDER BY start_seq DESC LIMIT :runs
)

-- name: pings
-- The pings of a run in the order in which they were recorded.
SELECT event, style, target, verdict, http_status, tries, sent_us, duration_us, error
FROM ping WHERE run_id = :run_id ORDER BY n

-- name: insert_bearing
-- Index what an entry is about.
INSERT INTO bearing (about, which, seq, kind) VALUES (:about, :which, :seq, :kind)

-- name: bearings
-- The entries that bear on something.
SELECT about, which, seq, kind FROM bearing WHERE about = :about AND which = :which ORDER BY seq

-- name: bearings_of_kind
-- The entries of a kind that bear on something.
SELECT DISTINCT seq FROM bearing WHERE kind = :kind ORDER BY seq

-- name: item_run
-- How far the file of a run's case entries is on record.
SELECT start_seq, file_offset, shift, entries, cases, done, no_action, failed, skipped, unannounced, rejected,
    expected, beyond_bytes, told, complete
FROM item_run WHERE start_seq = :start_seq

-- name: begin_item_run
-- Begin to take in the case entries of a run; nothing where that has begun.
INSERT INTO item_run (
    start_seq, file_offset, shift, entries, cases, done, no_action, failed, skipped, unannounced, rejected, expected,
    beyond_bytes, told, complete
) VALUES (:start_seq, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0)
ON CONFLICT (start_seq) DO NOTHING

-- name: advance_item_run
-- Go on from :was, as far as nobody else has: must change exactly one row.
UPDATE item_run SET
    file_offset = :file_offset, shift = :shift, entries = :entries, cases = :cases, done = :done,
    no_action = :no_action, failed = :failed, skipped = :skipped, unannounced = :unannounced, rejected = :rejected,
    expected = :expected, beyond_bytes = :beyond_bytes, told = :told, complete = :complete
WHERE start_seq = :start_seq AND file_offset = :was

-- name: insert_item
-- Put a case entry on record.
INSERT INTO item (id, case_id, said, file_offset, received_us, line)
VALUES (:id, :case_id, :said, :file_offset, :received_us, :line)

-- name: insert_item_list
-- Put the digests of record lines on record.
INSERT INTO item_list (id, digests) VALUES (:id, :digests)

-- name: insert_item_rejected
-- Keep what is no entry.
INSERT INTO item_rejected (start_seq, file_offset, size_bytes, lines, sha256, head, why, received_us)
VALUES (:start_seq, :file_offset, :size_bytes, :lines, :sha256, :head, :why, :received_us)

-- name: open_item
-- Note an intent that waits for its result; of two with one key the later.
INSERT INTO item_open (start_seq, case_id, key, id) VALUES (:start_seq, :case_id, :key, :id)
ON CONFLICT (start_seq, case_id, key) DO UPDATE SET id = excluded.id

-- name: close_item
-- The result has come; changes no row where there was no intent.
DELETE FROM item_open WHERE start_seq = :start_seq AND case_id = :case_id AND key = :key

-- name: item_reached
-- Whether a run has an intent or a result of a case.
SELECT 1 FROM item
WHERE case_id = :case_id AND seq <= 1000 AND id > :after AND id < :beyond AND said <> 'note'
UNION ALL
SELECT 1 FROM item WHERE start_seq = :start_seq AND case_id = :case_id AND seq > 1000 AND said <> 'note'
LIMIT 1

-- name: items
-- A page of case entries by their numbers.
SELECT id, case_id, said, file_offset, received_us, line FROM item
WHERE id > :after AND id < :beyond ORDER BY id LIMIT :page

-- name: item_lines
-- Case entries between two ids, both excluded, as they are filed and as they are.
SELECT id, case_id, said, file_offset, line FROM item WHERE id > :after AND id < :beyond ORDER BY id

-- name: item_next
-- The first case entry beyond some number.
SELECT id FROM item WHERE id > :after ORDER BY id LIMIT 1

-- name: discard_item
-- Do without a record of a damaged store that is not what was written.
DELETE FROM item WHERE id = :id

-- name: discard_item_lists
-- Do without the digests of a run's records, to derive them anew.
DELETE FROM item_list WHERE id > :after AND id < :beyond

-- name: item_words
-- A page of what case entries say, without their lines.
SELECT id, case_id, said FROM item WHERE id > :after AND id < :beyond ORDER BY id LIMIT :page

-- name: items_of_case
-- Every entry about a case. The two halves go with the two indexes; CROSS JOIN keeps SQLite from reading the second
-- from its end.
SELECT id, case_id, said, file_offset, received_us, line FROM item WHERE case_id = :case_id AND seq <= 1000
UNION ALL
SELECT item.id, item.case_id, item.said, item.file_offset, item.received_us, item.line
FROM item_run CROSS JOIN item
WHERE item_run.entries > 1000 AND item.start_seq = item_run.start_seq AND item.case_id = :case_id AND item.seq > 1000
ORDER BY id

-- name: items_told
-- Whether anything of a run's case entries is on record.
SELECT 1 FROM item_run WHERE start_seq = :start_seq

-- name: items_rejected
-- A page of the pieces of a run's file that are no entries.
SELECT file_offset, size_bytes, lines, sha256, head, why, received_us FROM item_rejected
WHERE start_seq = :start_seq AND file_offset > :after ORDER BY file_offset LIMIT :page

-- name: items_open
-- The intents of a run without a result.
SELECT case_id, key, id FROM item_open WHERE start_seq = :start_seq ORDER BY case_id, key LIMIT :limit

-- name: items_open_count
-- How many intents of a run have no result, and of how many cases.
SELECT count(1), count(DISTINCT case_id) FROM item_open WHERE start_seq = :start_seq

-- name: item_lists
-- A page of digests by the numbers of their first records.
SELECT id, digests FROM item_list WHERE id > :after AND id < :beyond ORDER BY id LIMIT :page

-- name: bearings_in_use
-- Whether anything bears on a run, an entry, a job, a span, a code or a commit at all.
SELECT
    EXISTS (SELECT 1 FROM bearing WHERE about = 'run'), EXISTS (SELECT 1 FROM bearing WHERE about = 'entry'),
    EXISTS (SELECT 1 FROM bearing WHERE about = 'job'), EXISTS (SELECT 1 FROM bearing WHERE about = 'span'),
    EXISTS (SELECT 1 FROM bearing WHERE about = 'code'), EXISTS (SELECT 1 FROM bearing WHERE about = 'commit')

-- name: lines_among
-- A few of the ledger's lines, by their numbers.
SELECT seq, line FROM ledger WHERE seq IN (:seq_0, :seq_1, :seq_2, :seq_3, :seq_4, :seq_5, :seq_6, :seq_7)

-- name: dues_done
-- The dues in (after_us, until_us] all of whose starts succeeded, ascending.
SELECT answered_due_us FROM run
WHERE job = :job AND answered_due_us > :after_us AND answered_due_us <= :until_us
GROUP BY answered_due_us
HAVING min(CASE WHEN outcome = 'succeeded' THEN 1 ELSE 0 END) = 1
ORDER BY answered_due_us

-- name: rejected_anywhere
-- A page of the pieces of all runs that are no entries.
SELECT start_seq, file_offset, size_bytes, lines, sha256, head, why, received_us FROM item_rejected
WHERE (start_seq, file_offset) > (:start_seq, :after) ORDER BY start_seq, file_offset LIMIT :page

-- name: last_item
-- The last case entry among some numbers that was received by an instant.
SELECT id, received_us FROM item
WHERE id > :after AND id < :beyond AND received_us <= :until_us ORDER BY id DESC LIMIT 1

-- name: items_so_far
-- How many case entries are on record, of how many runs, and of how many of these not all that was written is.
SELECT
    coalesce(sum(entries), 0), count(1),
    coalesce(sum(CASE WHEN rejected > 0 OR beyond_bytes > 0 OR complete = 0 THEN 1 ELSE 0 END), 0)
FROM item_run

-- name: bearing_at
-- Whether an entry is indexed as being about something.
SELECT seq FROM bearing WHERE about = :about AND which = :which AND seq = :seq

-- name: insert_pruned
-- Index what was pruned.
INSERT INTO pruned (seq, what, before_us, first_number, last_number, checkpoint_seq)
VALUES (:seq, :what, :before_us, :first_number, :last_number, :checkpoint_seq)

-- name: pruned
-- What was pruned of case entries, or of entries, oldest first.
SELECT seq, before_us, first_number, last_number, checkpoint_seq FROM pruned WHERE what = :what ORDER BY seq

-- name: forgotten
-- Up to which instant runs may no longer be on record, or NULL.
SELECT max(before_us) FROM pruned WHERE what = 'entries'

-- name: lift
-- Let the entry :seq, the last of the ledger, remove what is otherwise never removed.
INSERT INTO lifted (seq) VALUES (:seq)

-- name: lower
-- Nothing is removed any more.
DELETE FROM lifted

-- name: delete_item
-- Remove a case entry; its digest stays.
DELETE FROM item WHERE id = :id

-- name: delete_open
-- Forget that an intent has no result.
DELETE FROM item_open WHERE start_seq = :start_seq AND case_id = :case_id AND id = :id

-- name: item_runs_rejected
-- The runs with rejected lines.
SELECT start_seq FROM item_run WHERE rejected > 0 ORDER BY start_seq

-- name: blank_rejected
-- Remove the text of a rejected piece; its hash stays.
UPDATE item_rejected SET head = :head, why = :why WHERE start_seq = :start_seq AND file_offset = :file_offset

-- name: insert_erasure
-- Keep the secret of a redact entry.
INSERT INTO erasure (seq, secret) VALUES (:seq, :secret)

-- name: erasures
-- The secrets of all redact entries.
SELECT seq, secret FROM erasure ORDER BY seq

-- name: item_runs_before
-- A page of the runs with case entries that were started before an instant.
SELECT run.start_seq, run.outcome, item_run.complete FROM item_run JOIN run ON run.start_seq = item_run.start_seq
WHERE item_run.start_seq > :after AND run.started_us < :before_us
ORDER BY item_run.start_seq LIMIT :page

-- name: item_runs_between
-- Whether there are runs with case entries between two others.
SELECT 1 FROM item_run WHERE start_seq > :after AND start_seq < :beyond LIMIT 1

-- name: item_of_case_in_run
-- Whether a run has a case entry about a case.
SELECT 1 FROM item WHERE case_id = :case_id AND seq <= 1000 AND id > :after AND id < :beyond
UNION ALL
SELECT 1 FROM item WHERE start_seq = :start_seq AND case_id = :case_id AND seq > 1000
LIMIT 1

-- name: items_left
-- Whether a run has case entries that are still there.
SELECT 1 FROM item WHERE id > :after AND id < :beyond LIMIT 1

-- name: lines_between
-- The ledger's lines from one entry to another, both included.
SELECT seq, line FROM ledger WHERE seq >= :first_seq AND seq <= :last_seq ORDER BY seq

-- name: checkpoints_before
-- The checkpoints that were made before an instant, oldest first.
SELECT seq, first_seq, last_seq, list_sha256 FROM checkpoint WHERE at_us < :before_us ORDER BY seq

-- name: checkpoints_upto
-- The checkpoints up to one, oldest first.
SELECT seq, first_seq, last_seq FROM checkpoint WHERE seq <= :seq ORDER BY seq

-- name: checkpoints_about
-- The checkpoints that name an entry or a later one, oldest first, with their signatures.
SELECT checkpoint.seq, checkpoint.first_seq, checkpoint.last_seq, signature.text
FROM checkpoint LEFT JOIN signature ON signature.seq = checkpoint.seq
WHERE checkpoint.last_seq >= :seq ORDER BY checkpoint.seq

-- name: definitions
-- The entries that tell a job's definition.
SELECT seq FROM revision WHERE job = :job UNION SELECT registered_seq FROM job WHERE job = :job ORDER BY 1

-- name: entry_list
-- The digests of all lines that a checkpoint names, where they were kept.
SELECT digests FROM entry_list WHERE checkpoint_seq = :seq

-- name: keep_entry_list
-- Keep the digests of all lines that a checkpoint names.
INSERT INTO entry_list (checkpoint_seq, digests) VALUES (:seq, :digests)
ON CONFLICT (checkpoint_seq) DO NOTHING

-- name: delete_line
-- Remove an entry.
DELETE FROM ledger WHERE seq = :seq

-- name: delete_output
-- Remove the kept output of a run.
DELETE FROM output WHERE run_id = :run_id

-- name: delete_pings
-- Remove what became of a run's pings.
DELETE FROM ping WHERE run_id = :run_id

-- name: delete_item_lists
-- Remove the digests of a run's case entries.
DELETE FROM item_list WHERE id > :after AND id < :beyond

-- name: delete_rejected
-- Remove what is on record of a run's rejected lines.
DELETE FROM item_rejected WHERE start_seq = :start_seq

-- name: delete_item_run
-- Remove what a run's case entries came to.
DELETE FROM item_run WHERE start_seq = :start_seq

-- name: delete_run
-- Remove a run from the tables.
DELETE FROM run WHERE start_seq = :start_seq

-- name: delete_waiver
-- Remove a waiver from the tables.
DELETE FROM waiver WHERE seq = :seq

-- name: delete_bearings
-- Remove what an entry is about from the tables.
DELETE FROM bearing WHERE seq = :seq

-- name: delete_erasure
-- Forget the secret of a redact entry.
DELETE FROM erasure WHERE seq = :seq

-- name: delete_pruned
-- Remove what an entry pruned from the tables.
DELETE FROM pruned WHERE seq = :seq

-- name: run_rows_between
-- The runs that were started by some entries, every column of them.
SELECT /*run_columns*/, answered_due_us FROM run WHERE start_seq BETWEEN :first_seq AND :last_seq

-- name: jobs_between
-- The jobs that some entries have registered.
SELECT job, registered_us, registered_seq FROM job WHERE registered_seq BETWEEN :first_seq AND :last_seq

-- name: revisions_between
-- The revisions that some entries have opened.
SELECT job, number, expression, zone, policy, gap, fold, after_us, opened_us, seq FROM revision
WHERE seq BETWEEN :first_seq AND :last_seq

-- name: waivers_between
-- The waivers that some entries are.
SELECT seq, job, window_key, since_us, until_us, withdrawn, reason, host, actor, at_us FROM waiver
WHERE seq BETWEEN :first_seq AND :last_seq

-- name: checkpoint_rows_between
-- The checkpoints among some entries, as the tables have them.
SELECT seq, first_seq, last_seq, at_us, list_sha256 FROM checkpoint WHERE seq BETWEEN :first_seq AND :last_seq

-- name: pruned_between
-- What some entries have pruned.
SELECT seq, what, before_us, first_number, last_number, checkpoint_seq FROM pruned
WHERE seq BETWEEN :first_seq AND :last_seq

-- name: bearings_between
-- What some entries are about.
SELECT about, which, seq, kind FROM bearing WHERE seq BETWEEN :first_seq AND :last_seq

-- name: strays
-- Rows under entries that were never written, the first ones. A case entry is filed by its number (evidence/lists.py).
WITH ledger_end (seq, number) AS (
    SELECT coalesce(max(seq), 0), (coalesce(max(seq), 0) + 1) << 21 FROM ledger
)
SELECT 'ledger' AS table_name, seq FROM ledger WHERE seq < 1
UNION ALL
SELECT 'run', start_seq FROM run
WHERE start_seq < 1 OR start_seq > (SELECT seq FROM ledger_end)
UNION ALL
SELECT 'job', registered_seq FROM job WHERE registered_seq < 1 OR registered_seq > (SELECT seq FROM ledger_end)
UNION ALL
SELECT 'revision', seq FROM revision WHERE seq < 1 OR seq > (SELECT seq FROM ledger_end)
UNION ALL
SELECT 'waiver', seq FROM waiver WHERE seq < 1 OR seq > (SELECT seq FROM ledger_end)
UNION ALL
SELECT 'checkpoint', seq FROM checkpoint WHERE seq < 1 OR seq > (SELECT seq FROM ledger_end)
UNION ALL
SELECT 'pruned', seq FROM pruned WHERE seq < 1 OR seq > (SELECT seq FROM ledger_end)
UNION ALL
SELECT 'bearing', seq FROM bearing WHERE seq < 1 OR seq > (SELECT seq FROM ledger_end)
UNION ALL
SELECT 'item', id >> 21 FROM item WHERE id < 1 << 21 OR id >= (SELECT number FROM ledger_end)
UNION ALL
SELECT 'item_list', id >> 21 FROM item_list WHERE id < 1 << 21 OR id >= (SELECT number FROM ledger_end)
UNION ALL
SELECT 'item_rejected', start_seq FROM item_rejected
WHERE start_seq < 1 OR start_seq > (SELECT seq FROM ledger_end)
UNION ALL
SELECT 'item_open', start_seq FROM item_open WHERE start_seq < 1 OR start_seq > (SELECT seq FROM ledger_end)
UNION ALL
SELECT 'item_run', start_seq FROM item_run WHERE start_seq < 1 OR start_seq > (SELECT seq FROM ledger_end)
LIMIT 100

-- name: orphans
-- Rows of what is not on record, the first ones: the table, and what it names.
SELECT 'output' AS table_name, run_id FROM output
WHERE NOT EXISTS (SELECT 1 FROM run WHERE run.run_id = output.run_id)
UNION ALL
SELECT 'ping', run_id FROM ping WHERE NOT EXISTS (SELECT 1 FROM run WHERE run.run_id = ping.run_id)
UNION ALL
SELECT 'signature', CAST(seq AS TEXT) FROM signature
WHERE NOT EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.seq = signature.seq)
UNION ALL
SELECT 'entry_list', CAST(checkpoint_seq AS TEXT) FROM entry_list
WHERE NOT EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.seq = entry_list.checkpoint_seq)
UNION ALL
SELECT 'erasure', CAST(seq AS TEXT) FROM erasure
WHERE NOT EXISTS (SELECT 1 FROM bearing WHERE bearing.seq = erasure.seq AND bearing.kind = 'redact')
LIMIT 100

-- name: items_of_case_in_run
-- What a run said of a case, in order.
SELECT id, said, line FROM item WHERE case_id = :case_id AND seq <= 1000 AND id > :after AND id < :beyond
UNION ALL
SELECT id, said, line FROM item WHERE start_seq = :start_seq AND case_id = :case_id AND seq > 1000
ORDER BY id

-- name: runs_with_items
-- The entries, after one, under which anything of case entries is filed: one step of an index for each of them.
WITH RECURSIVE recorded (start_seq) AS (
    SELECT min(id) >> 21 FROM item WHERE id >= (CAST(:after AS BIGINT) + 1) << 21
    UNION ALL
    SELECT (SELECT min(item.id) >> 21 FROM item WHERE item.id >= (recorded.start_seq + 1) << 21)
    FROM recorded WHERE recorded.start_seq IS NOT NULL
),
listed (start_seq) AS (
    SELECT min(id) >> 21 FROM item_list WHERE id >= (CAST(:after AS BIGINT) + 1) << 21
    UNION ALL
    SELECT (SELECT min(item_list.id) >> 21 FROM item_list WHERE item_list.id >= (listed.start_seq + 1) << 21)
    FROM listed WHERE listed.start_seq IS NOT NULL
)
SELECT start_seq FROM recorded WHERE start_seq IS NOT NULL
UNION
SELECT start_seq FROM listed WHERE start_seq IS NOT NULL
UNION
SELECT start_seq FROM item_rejected WHERE start_seq > :after
UNION
SELECT start_seq FROM item_open WHERE start_seq > :after
UNION
SELECT start_seq FROM item_run WHERE start_seq > :after
