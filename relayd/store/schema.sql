-- The store, version 1: one text for SQLite and PostgreSQL.
--
-- It is written for SQLite; relayd/store/postgresql/database.py turns each statement into what
-- PostgreSQL understands: types, keys that number themselves, and triggers. So it keeps to
-- INTEGER, REAL, TEXT and BLOB, and to triggers that refuse a change under a condition that both
-- engines understand. Truths are 0 and 1, times are seconds since 1970 (UTC).

-- ---- samples: one measurement a row, append-only, with where each came from ----------------------

CREATE TABLE regions (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE CHECK (name <> '')
) STRICT;

CREATE TABLE metrics (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE setups (
    id INTEGER PRIMARY KEY,
    tool TEXT NOT NULL,
    src_zone TEXT NOT NULL,
    dst_zone TEXT NOT NULL,
    src_vm TEXT NOT NULL,
    dst_vm TEXT NOT NULL,
    UNIQUE (tool, src_zone, dst_zone, src_vm, dst_vm)
) STRICT;

CREATE TABLE batches (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,            -- the file's name, or what was measured live
    format TEXT NOT NULL,          -- as in `relayd import FORMAT`, or 'live'
    digest TEXT,                   -- BLAKE2b-256 of the file's content, hexadecimal
    options TEXT NOT NULL,         -- JSON object
    relayd_version TEXT NOT NULL,
    imported_at_s REAL NOT NULL,
    reporter TEXT NOT NULL DEFAULT '',  -- name of the token
    address TEXT NOT NULL DEFAULT '',   -- that the request came from
    source TEXT NOT NULL DEFAULT '',    -- who is trusted or not; '' for the own prober
    last_sample_id INTEGER,
    accepted INTEGER,              -- NULL until all of the batch is stored
    duplicates INTEGER,
    quarantined INTEGER NOT NULL DEFAULT 0,
    skipped TEXT                   -- JSON object: reason -> {"total", "first_rows"}
) STRICT;

-- The key holds all that tells samples apart, so that each is stored once. What rows refer to is
-- read in the transaction that writes them, and never removed: looking at four references a row
-- would take longer than all the rest. `relayd data store check` looks at them.
CREATE TABLE samples (
    src_id INTEGER NOT NULL,
    dst_id INTEGER NOT NULL,
    metric_id INTEGER NOT NULL,
    measured_at_s REAL NOT NULL CHECK (measured_at_s BETWEEN -1e300 AND 1e300),
    value REAL NOT NULL CHECK (value BETWEEN 0 AND 1e300),
    connections INTEGER NOT NULL CHECK (connections >= 0),                -- 0: not known
    duration_s REAL NOT NULL CHECK (duration_s BETWEEN 0 AND 1e300),      -- 0: not known
    warmed_up INTEGER NOT NULL CHECK (warmed_up IN (0, 1)),
    setup_id INTEGER NOT NULL,
    detail_digest INTEGER NOT NULL, -- first 8 bytes of BLAKE2b of detail and the like; 0 for none
    detail TEXT NOT NULL,           -- JSON object with what else the tool said, or ''
    batch_id INTEGER NOT NULL,
    id INTEGER NOT NULL,            -- ascending in the order of arrival; may have gaps
    address TEXT CHECK (address IN ('public', 'private')),
    new_level INTEGER NOT NULL DEFAULT 0 CHECK (new_level IN (0, 1)),
    intervals INTEGER,
    PRIMARY KEY (src_id, dst_id, metric_id, measured_at_s, value, connections, duration_s,
                 warmed_up, setup_id, detail_digest)
) STRICT, WITHOUT ROWID;

-- Which series a token, or an address without one, has reported: it may fill so many.
CREATE TABLE reported_series (
    source TEXT NOT NULL,           -- as of batches
    src_id INTEGER NOT NULL REFERENCES regions,
    dst_id INTEGER NOT NULL REFERENCES regions,
    metric_id INTEGER NOT NULL REFERENCES metrics,
    private INTEGER NOT NULL CHECK (private IN (0, 1)),
    PRIMARY KEY (source, src_id, dst_id, metric_id, private)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER regions_keep_names BEFORE UPDATE ON regions
BEGIN SELECT RAISE(ABORT, 'regions are append-only'); END;
CREATE TRIGGER regions_stay BEFORE DELETE ON regions
BEGIN SELECT RAISE(ABORT, 'regions are append-only'); END;
CREATE TRIGGER metrics_keep_names BEFORE UPDATE ON metrics
BEGIN SELECT RAISE(ABORT, 'metrics are append-only'); END;
CREATE TRIGGER metrics_stay BEFORE DELETE ON metrics
BEGIN SELECT RAISE(ABORT, 'metrics are append-only'); END;
CREATE TRIGGER setups_keep_values BEFORE UPDATE ON setups
BEGIN SELECT RAISE(ABORT, 'setups are append-only'); END;
CREATE TRIGGER setups_stay BEFORE DELETE ON setups
BEGIN SELECT RAISE(ABORT, 'setups are append-only'); END;
CREATE TRIGGER batches_keep_values BEFORE UPDATE ON batches WHEN OLD.accepted IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'batches are append-only'); END;
CREATE TRIGGER batches_stay BEFORE DELETE ON batches
BEGIN SELECT RAISE(ABORT, 'batches are append-only'); END;
CREATE TRIGGER samples_keep_values BEFORE UPDATE ON samples
BEGIN SELECT RAISE(ABORT, 'samples are append-only'); END;

-- ---- samples made small: summaries of those that a compaction removed -----------------------------

CREATE TABLE compactions (
    id INTEGER PRIMARY KEY,
    at_s REAL NOT NULL,
    older_than_s REAL NOT NULL,
    samples INTEGER,               -- NULL while it is under way
    summaries INTEGER,
    source TEXT NOT NULL DEFAULT ''  -- as of batches
) STRICT;

CREATE TABLE sample_summaries (
    compaction_id INTEGER NOT NULL REFERENCES compactions,
    src_id INTEGER NOT NULL REFERENCES regions,
    dst_id INTEGER NOT NULL REFERENCES regions,
    metric_id INTEGER NOT NULL REFERENCES metrics,
    setup_id INTEGER NOT NULL REFERENCES setups,
    connections INTEGER NOT NULL,
    warmed_up INTEGER NOT NULL,
    begin_s REAL NOT NULL,
    period_s REAL NOT NULL CHECK (period_s > 0),
    samples INTEGER NOT NULL CHECK (samples > 0),
    total REAL NOT NULL,           -- of values; mean = total / samples
    least REAL NOT NULL,
    p10 REAL NOT NULL,
    median REAL NOT NULL,
    p90 REAL NOT NULL,
    most REAL NOT NULL,
    duration_s REAL NOT NULL,      -- measured seconds in all
    first_at_s REAL NOT NULL,
    last_at_s REAL NOT NULL,
    PRIMARY KEY (src_id, dst_id, metric_id, begin_s, setup_id, connections, warmed_up,
                 compaction_id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER compactions_seal BEFORE UPDATE ON compactions
WHEN OLD.samples IS NOT NULL OR NEW.samples IS NULL OR NEW.summaries IS NULL
    OR NEW.samples <> (
        SELECT coalesce(sum(samples), 0) FROM sample_summaries WHERE compaction_id = OLD.id)
    OR NEW.summaries <> (
        SELECT count(*) FROM sample_summaries WHERE compaction_id = OLD.id)
BEGIN SELECT RAISE(ABORT, 'a compaction counts what it has summarised, once'); END;
CREATE TRIGGER compactions_stay BEFORE DELETE ON compactions
BEGIN SELECT RAISE(ABORT, 'summaries are append-only'); END;
CREATE TRIGGER summaries_keep_values BEFORE UPDATE ON sample_summaries
BEGIN SELECT RAISE(ABORT, 'summaries are append-only'); END;
CREATE TRIGGER summaries_stay BEFORE DELETE ON sample_summaries
BEGIN SELECT RAISE(ABORT, 'summaries are append-only'); END;
CREATE TRIGGER summaries_stay_out BEFORE INSERT ON sample_summaries
WHEN (SELECT samples FROM compactions WHERE id = NEW.compaction_id) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'summaries are append-only'); END;

-- A sample may leave only in a compaction under way, into a summary that covers it.
CREATE TRIGGER samples_stay BEFORE DELETE ON samples
WHEN NOT EXISTS (
    SELECT 1 FROM compactions
    JOIN sample_summaries AS summary ON summary.compaction_id = compactions.id
    WHERE compactions.samples IS NULL
        AND summary.src_id = OLD.src_id
        AND summary.dst_id = OLD.dst_id
        AND summary.metric_id = OLD.metric_id
        AND summary.setup_id = OLD.setup_id
        AND summary.connections = OLD.connections
        AND summary.warmed_up = OLD.warmed_up
        AND OLD.measured_at_s BETWEEN summary.first_at_s AND summary.last_at_s
)
BEGIN SELECT RAISE(ABORT, 'samples are append-only'); END;

-- ---- samples that do not count, and what operators decided about them ------------------------------

CREATE TABLE quarantined_samples (
    id INTEGER PRIMARY KEY,
    batch_id INTEGER NOT NULL REFERENCES batches,
    digest TEXT NOT NULL UNIQUE,    -- BLAKE2b-128 of the sample, hexadecimal
    reason TEXT NOT NULL,
    src TEXT NOT NULL,
    dst TEXT NOT NULL,
    metric TEXT NOT NULL,
    value REAL NOT NULL,
    measured_at_s REAL NOT NULL,
    sample TEXT NOT NULL            -- all of it, a JSON object
) STRICT;

CREATE TABLE quarantine_decisions (
    sample_id INTEGER NOT NULL REFERENCES quarantined_samples,
    decision TEXT NOT NULL CHECK (decision IN ('accept', 'reject')),
    at_s REAL NOT NULL,
    who TEXT NOT NULL,
    reason TEXT NOT NULL,
    batch_id INTEGER REFERENCES batches,    -- that has it among the samples; NULL where rejected
    PRIMARY KEY (sample_id, decision)
) STRICT, WITHOUT ROWID;

-- To retract samples, to restore retracted ones, or to count them as the own prober's.
CREATE TABLE sample_decisions (
    id INTEGER PRIMARY KEY,
    decision TEXT NOT NULL CHECK (decision IN ('retract', 'restore', 'confirm')),
    at_s REAL NOT NULL,
    who TEXT NOT NULL,
    reason TEXT NOT NULL,
    selection TEXT NOT NULL,        -- JSON object: which samples were meant
    samples INTEGER NOT NULL        -- how many these were
) STRICT;

CREATE TABLE retracted_samples (
    sample_id INTEGER NOT NULL,
    decision_id INTEGER NOT NULL REFERENCES sample_decisions,
    restored_by INTEGER REFERENCES sample_decisions,    -- NULL while it is retracted
    PRIMARY KEY (sample_id, decision_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE confirmed_samples (
    sample_id INTEGER PRIMARY KEY,
    decision_id INTEGER NOT NULL REFERENCES sample_decisions
) STRICT;

CREATE TRIGGER quarantined_samples_keep_values BEFORE UPDATE ON quarantined_samples
BEGIN SELECT RAISE(ABORT, 'samples are append-only'); END;
CREATE TRIGGER quarantined_samples_stay BEFORE DELETE ON quarantined_samples
BEGIN SELECT RAISE(ABORT, 'samples are append-only'); END;
CREATE TRIGGER quarantine_decisions_keep_values BEFORE UPDATE ON quarantine_decisions
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER quarantine_decisions_stay BEFORE DELETE ON quarantine_decisions
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER sample_decisions_keep_values BEFORE UPDATE ON sample_decisions
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER sample_decisions_stay BEFORE DELETE ON sample_decisions
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER retracted_samples_keep_values BEFORE UPDATE ON retracted_samples
WHEN OLD.restored_by IS NOT NULL OR NEW.restored_by IS NULL OR NEW.sample_id <> OLD.sample_id
    OR NEW.decision_id <> OLD.decision_id
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER retracted_samples_stay BEFORE DELETE ON retracted_samples
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER confirmed_samples_keep_values BEFORE UPDATE ON confirmed_samples
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER confirmed_samples_stay BEFORE DELETE ON confirmed_samples
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;

-- The samples that are not retracted: what everything but the list of decisions reads.
CREATE VIEW used_samples AS
SELECT * FROM samples WHERE NOT EXISTS (
    SELECT 1 FROM retracted_samples WHERE sample_id = samples.id AND restored_by IS NULL
);

-- All samples with names, for people.
CREATE VIEW measurements AS
SELECT
    samples.id AS id,
    src.name AS src,
    dst.name AS dst,
    metrics.name AS metric,
    samples.value AS value,
    datetime(samples.measured_at_s, 'unixepoch') AS measured_at,
    nullif(samples.connections, 0) AS connections,
    nullif(samples.duration_s, 0.0) AS duration_s,
    samples.warmed_up AS warmed_up,
    setups.tool AS tool,
    setups.src_zone AS src_zone,
    setups.dst_zone AS dst_zone,
    setups.src_vm AS src_vm,
    setups.dst_vm AS dst_vm,
    samples.detail AS detail,
    batches.id AS batch_id,
    batches.name AS batch,
    samples.address AS address,
    samples.new_level AS new_level,
    samples.intervals AS intervals
FROM samples
JOIN regions AS src ON src.id = samples.src_id
JOIN regions AS dst ON dst.id = samples.dst_id
JOIN metrics ON metrics.id = samples.metric_id
JOIN setups ON setups.id = samples.setup_id
JOIN batches ON batches.id = samples.batch_id;

-- ---- snapshots: immutable networks of estimates ---------------------------------------------------

CREATE TABLE snapshots (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE CHECK (id <> ''),
    as_of_s REAL NOT NULL,
    created_at_s REAL NOT NULL,
    source TEXT NOT NULL,          -- 'measured', 'baseline' or 'mixed'
    catalogue_digest TEXT NOT NULL,
    samples_through INTEGER NOT NULL,
    links INTEGER NOT NULL,
    sites INTEGER NOT NULL,
    content BLOB,                  -- planner.model.document.network_columns, by zlib
    pruned_at_s REAL,              -- without its content since
    CHECK (content IS NULL OR pruned_at_s IS NULL)
) STRICT;

CREATE TRIGGER snapshots_keep_values BEFORE UPDATE ON snapshots
WHEN OLD.pruned_at_s IS NOT NULL OR NEW.pruned_at_s IS NULL OR NEW.id <> OLD.id
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER snapshots_stay BEFORE DELETE ON snapshots
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;

-- The samples that still count, of the newest snapshot: the next one reads series with new samples.
CREATE TABLE current_samples (
    snapshot_key INTEGER PRIMARY KEY,
    content BLOB NOT NULL          -- relayd.store.snapshots, by zlib
) STRICT;

-- ---- campaigns, and what plans carried when they were run -----------------------------------------

CREATE TABLE controller (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL             -- hosts know by it whose processes they run
) STRICT;

INSERT INTO controller VALUES (1, lower(hex(randomblob(16))));

CREATE TABLE campaigns (
    id INTEGER PRIMARY KEY,
    options TEXT NOT NULL,         -- JSON object: what was asked for
    started_at_s REAL NOT NULL,
    finished_at_s REAL             -- NULL while there is something left to do
) STRICT;

CREATE TABLE probes (
    id INTEGER PRIMARY KEY,
    campaign_id INTEGER NOT NULL REFERENCES campaigns,
    stage TEXT NOT NULL,
    task TEXT NOT NULL,            -- JSON object
    status TEXT NOT NULL DEFAULT 'planned' CHECK (status IN ('planned', 'done', 'failed')),
    attempts INTEGER NOT NULL DEFAULT 0,
    sent_gb REAL NOT NULL DEFAULT 0,
    usd REAL NOT NULL DEFAULT 0,
    ended_at_s REAL,
    problem TEXT NOT NULL DEFAULT '',
    batch_id INTEGER REFERENCES batches,  -- that holds its samples
    reserved_gb REAL NOT NULL DEFAULT 0,
    reserved_usd REAL NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX probes_by_campaign ON probes (campaign_id);
CREATE TRIGGER probes_stay_done BEFORE UPDATE ON probes WHEN OLD.status = 'done'
BEGIN SELECT RAISE(ABORT, 'the probe is done'); END;

CREATE TABLE verifications (
    id INTEGER PRIMARY KEY,
    plan_id TEXT NOT NULL,
    snapshot_id TEXT NOT NULL,     -- that the plan rested on; it may have been pruned since
    src_id INTEGER NOT NULL REFERENCES regions,
    dst_id INTEGER NOT NULL REFERENCES regions,
    run TEXT NOT NULL CHECK (run IN ('plan', 'direct')),
    verdict TEXT NOT NULL,         -- of the plan
    path TEXT NOT NULL,            -- regions joined by '>'; '' for all paths of the run together
    connections INTEGER NOT NULL CHECK (connections > 0),
    vm_pairs INTEGER NOT NULL CHECK (vm_pairs > 0),  -- over which the connections were divided
    alone INTEGER NOT NULL CHECK (alone IN (0, 1)),  -- 0 where paths ran at the same time
    low_gbps REAL NOT NULL,        -- with the error of one measurement
    expected_gbps REAL NOT NULL,
    high_gbps REAL NOT NULL,
    achieved_gbps REAL NOT NULL,
    at_s REAL NOT NULL
) STRICT;

CREATE INDEX verifications_by_pair ON verifications (src_id, dst_id, at_s);

-- ---- watching -------------------------------------------------------------------------------------

CREATE TABLE link_states (
    src_id INTEGER NOT NULL REFERENCES regions,
    dst_id INTEGER NOT NULL REFERENCES regions,
    condition TEXT NOT NULL CHECK (condition IN ('degraded', 'down')),
    since_s REAL NOT NULL,
    reason TEXT NOT NULL,
    rtt_ms REAL,                   -- now, where it is what degrades the link
    loss_share REAL NOT NULL CHECK (loss_share >= 0 AND loss_share <= 1),
    rate_share REAL NOT NULL CHECK (rate_share >= 0 AND rate_share <= 1),
    valid_until_s REAL NOT NULL,   -- a watcher that has died must not be believed for ever
    health TEXT NOT NULL,          -- JSON object: what the watcher goes on from after a restart
    PRIMARY KEY (src_id, dst_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE level_shifts (
    src_id INTEGER NOT NULL REFERENCES regions,
    dst_id INTEGER NOT NULL REFERENCES regions,
    metric_id INTEGER NOT NULL REFERENCES metrics,
    at_s REAL NOT NULL,            -- of the first sample of the new level
    before REAL NOT NULL,
    after REAL NOT NULL,
    found_at_s REAL NOT NULL,
    measured_again_at_s REAL,      -- NULL until throughput was measured for it
    PRIMARY KEY (src_id, dst_id, metric_id, at_s)
) STRICT, WITHOUT ROWID;

CREATE TABLE watch_spending (
    day TEXT NOT NULL,             -- YYYY-MM-DD
    kind TEXT NOT NULL,            -- 'light' or 'campaign'
    reserved_usd REAL NOT NULL DEFAULT 0,
    spent_usd REAL NOT NULL DEFAULT 0,
    sent_gb REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (day, kind)
) STRICT, WITHOUT ROWID;

-- ---- transfers under way --------------------------------------------------------------------------

CREATE TABLE transfers (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    src_id INTEGER NOT NULL REFERENCES regions,
    dst_id INTEGER NOT NULL REFERENCES regions,
    volume_gb REAL NOT NULL,
    label TEXT NOT NULL,
    who TEXT NOT NULL,              -- a token's name, or user@machine
    began_s REAL NOT NULL,
    deadline_at_s REAL,
    silent_after_s REAL NOT NULL,   -- without a report
    digest TEXT NOT NULL,           -- of the request that began it
    plan TEXT,                      -- JSON of the whole plan; NULL if none was given, or long ago
    expected TEXT,                  -- JSON of its figures, which stay
    via TEXT,                       -- the relay, or 'direct'; NULL for several paths
    state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'failed', 'cancelled')),
    problem TEXT NOT NULL,
    limited_by TEXT NOT NULL,       -- 'network', 'application', 'disk' or 'unknown'
    moved_gb REAL NOT NULL,
    moved_via TEXT NOT NULL,        -- JSON, GB by relay or 'direct', as last reported
    reported_s REAL,                -- time of the last report
    ended_s REAL,
    heard_s REAL NOT NULL,          -- when the store was told last
    event_id INTEGER,               -- of the last event of its progress, which the next replaces
    reports TEXT NOT NULL           -- JSON, [time, GB] of each that is kept, in order
) STRICT;

CREATE INDEX transfers_of_pair ON transfers (src_id, dst_id, ended_s);

-- ---- the service, and who changed what --------------------------------------------------------------

CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL CHECK (name <> ''),
    digest TEXT NOT NULL UNIQUE,   -- SHA-256 of the token, hexadecimal; the token is not kept
    scopes TEXT NOT NULL,          -- JSON array
    created_at_s REAL NOT NULL,
    expires_at_s REAL,             -- NULL for never
    revoked_at_s REAL,
    requests_per_s REAL,
    max_series INTEGER,
    last_used_at_s REAL
) STRICT;

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    at_s REAL NOT NULL,
    kind TEXT NOT NULL CHECK (kind <> ''),  -- such as 'snapshot', 'campaign', 'link'
    subject TEXT NOT NULL,                  -- what it is about: a snapshot's id, 'src>dst', ...
    detail TEXT NOT NULL                    -- JSON object
) STRICT;

CREATE TABLE changes (
    id INTEGER PRIMARY KEY,
    at_s REAL NOT NULL,
    who TEXT NOT NULL,      -- a token's name, or a user of a machine
    address TEXT NOT NULL,  -- that a request came from; '' for a command
    action TEXT NOT NULL CHECK (action <> ''),  -- such as 'token create'
    subject TEXT NOT NULL   -- what was changed, such as the token's number and name
) STRICT;

CREATE TRIGGER changes_keep_values BEFORE UPDATE ON changes
BEGIN SELECT RAISE(ABORT, 'changes are append-only'); END;
CREATE TRIGGER changes_stay BEFORE DELETE ON changes
BEGIN SELECT RAISE(ABORT, 'changes are append-only'); END;

CREATE TABLE metadata (
    name TEXT PRIMARY KEY NOT NULL,
    value REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- Which process leads in a role. The number grows with each holder: relayd/store/leases.py.
CREATE TABLE leases (
    role TEXT PRIMARY KEY NOT NULL,
    number INTEGER NOT NULL,
    holder TEXT NOT NULL,
    expires_at_s REAL NOT NULL,
    UNIQUE (role, number)
) STRICT;
