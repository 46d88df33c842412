-- Legs are called links, samples have columns for what is queried, and estimates their origin.

ALTER TABLE leg_states RENAME TO link_states;
UPDATE watch_spending SET kind = 'liveness' WHERE kind = 'light';
ALTER TABLE watch_marks RENAME TO metadata;

-- ---- snapshots ----------------------------------------------------------------------------------

DROP TRIGGER snapshots_keep_values;
DROP TRIGGER legs_stay_out;
ALTER TABLE snapshots RENAME COLUMN legs TO links;

-- From what estimates were made. Most of a snapshot's are alike but for the counts and times of
-- their samples, which are beside the bounds.
CREATE TABLE origins (
    snapshot_key INTEGER NOT NULL REFERENCES snapshots,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('measured', 'inferred', 'baseline')),
    method TEXT NOT NULL,          -- planner.model.estimate.Method; 'unknown' before version 6
    address TEXT CHECK (address IN ('public', 'private', 'both')),
    figures TEXT,                  -- JSON object: planner.model.estimate.Figures
    PRIMARY KEY (snapshot_key, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE links (
    snapshot_key INTEGER NOT NULL REFERENCES snapshots,
    src_id INTEGER NOT NULL REFERENCES regions,
    dst_id INTEGER NOT NULL REFERENCES regions,
    rtt_ms_low REAL NOT NULL,
    rtt_ms_expected REAL NOT NULL,
    rtt_ms_high REAL NOT NULL,
    rtt_ms_origin INTEGER NOT NULL,
    rtt_ms_samples INTEGER NOT NULL,
    rtt_ms_links INTEGER NOT NULL,
    rtt_ms_newest_s REAL,
    rtt_ms_oldest_s REAL,
    per_flow_mbps_low REAL NOT NULL,
    per_flow_mbps_expected REAL NOT NULL,
    per_flow_mbps_high REAL NOT NULL,
    per_flow_mbps_origin INTEGER NOT NULL,
    per_flow_mbps_samples INTEGER NOT NULL,
    per_flow_mbps_links INTEGER NOT NULL,
    per_flow_mbps_newest_s REAL,
    per_flow_mbps_oldest_s REAL,
    aggregate_gbps_low REAL NOT NULL,
    aggregate_gbps_expected REAL NOT NULL,
    aggregate_gbps_high REAL NOT NULL,
    aggregate_gbps_origin INTEGER NOT NULL,
    aggregate_gbps_samples INTEGER NOT NULL,
    aggregate_gbps_links INTEGER NOT NULL,
    aggregate_gbps_newest_s REAL,
    aggregate_gbps_oldest_s REAL,
    loss_pct REAL,
    PRIMARY KEY (snapshot_key, src_id, dst_id),
    CHECK (rtt_ms_low <= rtt_ms_expected AND rtt_ms_expected <= rtt_ms_high),
    CHECK (per_flow_mbps_low <= per_flow_mbps_expected AND per_flow_mbps_expected <= per_flow_mbps_high),
    CHECK (aggregate_gbps_low <= aggregate_gbps_expected AND aggregate_gbps_expected <= aggregate_gbps_high)
) STRICT, WITHOUT ROWID;

CREATE TABLE placed (
    snapshot_key INTEGER NOT NULL REFERENCES snapshots,
    position INTEGER NOT NULL,
    region_id INTEGER NOT NULL REFERENCES regions,
    vm_type TEXT NOT NULL,
    egress_gbps_low REAL NOT NULL,
    egress_gbps_expected REAL NOT NULL,
    egress_gbps_high REAL NOT NULL,
    egress_gbps_origin INTEGER NOT NULL,
    egress_gbps_samples INTEGER NOT NULL,
    egress_gbps_links INTEGER NOT NULL,
    egress_gbps_newest_s REAL,
    egress_gbps_oldest_s REAL,
    ingress_gbps_low REAL NOT NULL,
    ingress_gbps_expected REAL NOT NULL,
    ingress_gbps_high REAL NOT NULL,
    ingress_gbps_origin INTEGER NOT NULL,
    ingress_gbps_samples INTEGER NOT NULL,
    ingress_gbps_links INTEGER NOT NULL,
    ingress_gbps_newest_s REAL,
    ingress_gbps_oldest_s REAL,
    window_mb_low REAL NOT NULL,
    window_mb_expected REAL NOT NULL,
    window_mb_high REAL NOT NULL,
    window_mb_origin INTEGER NOT NULL,
    window_mb_samples INTEGER NOT NULL,
    window_mb_links INTEGER NOT NULL,
    window_mb_newest_s REAL,
    window_mb_oldest_s REAL,
    PRIMARY KEY (snapshot_key, position),
    UNIQUE (snapshot_key, region_id),
    CHECK (egress_gbps_low <= egress_gbps_expected AND egress_gbps_expected <= egress_gbps_high),
    CHECK (ingress_gbps_low <= ingress_gbps_expected AND ingress_gbps_expected <= ingress_gbps_high),
    CHECK (window_mb_low <= window_mb_expected AND window_mb_expected <= window_mb_high)
) STRICT, WITHOUT ROWID;

-- What earlier versions have kept of an origin: its kind, and a sentence.
CREATE TEMPORARY TABLE sentences (
    snapshot_key INTEGER,
    kind TEXT,
    sentence TEXT,
    number INTEGER,
    PRIMARY KEY (snapshot_key, kind, sentence)
);
INSERT INTO sentences
SELECT snapshot_key, kind, sentence,
    row_number() OVER (PARTITION BY snapshot_key ORDER BY kind, sentence)
FROM (
    SELECT snapshot_key, rtt_ms_source AS kind, coalesce(rtt_ms_basis, '') AS sentence FROM legs
    UNION
    SELECT snapshot_key, per_flow_mbps_source AS kind, coalesce(per_flow_mbps_basis, '') AS sentence FROM legs
    UNION
    SELECT snapshot_key, aggregate_gbps_source AS kind, coalesce(aggregate_gbps_basis, '') AS sentence FROM legs
    UNION
    SELECT snapshot_key, egress_gbps_source AS kind, coalesce(egress_gbps_basis, '') AS sentence FROM sites
    UNION
    SELECT snapshot_key, ingress_gbps_source AS kind, coalesce(ingress_gbps_basis, '') AS sentence FROM sites
    UNION
    SELECT snapshot_key, window_mb_source AS kind, coalesce(window_mb_basis, '') AS sentence FROM sites
) AS found;
INSERT INTO origins
SELECT snapshot_key, number, kind, 'unknown', NULL,
    CASE WHEN sentence <> '' THEN json_object('note', sentence) END
FROM sentences;
INSERT INTO links
SELECT snapshot_key, src_id, dst_id,
    rtt_ms_low, rtt_ms_expected, rtt_ms_high,
    (
        SELECT number FROM sentences
        WHERE sentences.snapshot_key = old.snapshot_key AND kind = rtt_ms_source
            AND sentence = coalesce(rtt_ms_basis, '')
    ),
    rtt_ms_samples, 0, rtt_ms_measured_at_s, NULL,
    per_flow_mbps_low, per_flow_mbps_expected, per_flow_mbps_high,
    (
        SELECT number FROM sentences
        WHERE sentences.snapshot_key = old.snapshot_key AND kind = per_flow_mbps_source
            AND sentence = coalesce(per_flow_mbps_basis, '')
    ),
    per_flow_mbps_samples, 0, per_flow_mbps_measured_at_s, NULL,
    aggregate_gbps_low, aggregate_gbps_expected, aggregate_gbps_high,
    (
        SELECT number FROM sentences
        WHERE sentences.snapshot_key = old.snapshot_key AND kind = aggregate_gbps_source
            AND sentence = coalesce(aggregate_gbps_basis, '')
    ),
    aggregate_gbps_samples, 0, aggregate_gbps_measured_at_s, NULL,
    loss_pct
FROM legs AS old;
INSERT INTO placed
SELECT snapshot_key, position, region_id, vm_type,
    egress_gbps_low, egress_gbps_expected, egress_gbps_high,
    (
        SELECT number FROM sentences
        WHERE sentences.snapshot_key = old.snapshot_key AND kind = egress_gbps_source
            AND sentence = coalesce(egress_gbps_basis, '')
    ),
    egress_gbps_samples, 0, egress_gbps_measured_at_s, NULL,
    ingress_gbps_low, ingress_gbps_expected, ingress_gbps_high,
    (
        SELECT number FROM sentences
        WHERE sentences.snapshot_key = old.snapshot_key AND kind = ingress_gbps_source
            AND sentence = coalesce(ingress_gbps_basis, '')
    ),
    ingress_gbps_samples, 0, ingress_gbps_measured_at_s, NULL,
    window_mb_low, window_mb_expected, window_mb_high,
    (
        SELECT number FROM sentences
        WHERE sentences.snapshot_key = old.snapshot_key AND kind = window_mb_source
            AND sentence = coalesce(window_mb_basis, '')
    ),
    window_mb_samples, 0, window_mb_measured_at_s, NULL
FROM sites AS old;
DROP TABLE sentences;
DROP TABLE legs;
DROP TABLE sites;
ALTER TABLE placed RENAME TO sites;
CREATE INDEX links_by_destination ON links (snapshot_key, dst_id);

CREATE TRIGGER snapshots_keep_values BEFORE UPDATE ON snapshots WHEN OLD.links IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER links_keep_values BEFORE UPDATE ON links
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER links_stay_out BEFORE INSERT ON links
WHEN (SELECT links FROM snapshots WHERE key = NEW.snapshot_key) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER links_stay BEFORE DELETE ON links
WHEN NOT EXISTS (
    SELECT 1 FROM snapshots JOIN pruned_snapshots USING (id) WHERE key = OLD.snapshot_key
)
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER sites_keep_values BEFORE UPDATE ON sites
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER sites_stay_out BEFORE INSERT ON sites
WHEN (SELECT links FROM snapshots WHERE key = NEW.snapshot_key) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER sites_stay BEFORE DELETE ON sites
WHEN NOT EXISTS (
    SELECT 1 FROM snapshots JOIN pruned_snapshots USING (id) WHERE key = OLD.snapshot_key
)
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER origins_keep_values BEFORE UPDATE ON origins
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER origins_stay_out BEFORE INSERT ON origins
WHEN (SELECT links FROM snapshots WHERE key = NEW.snapshot_key) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER origins_stay BEFORE DELETE ON origins
WHEN NOT EXISTS (
    SELECT 1 FROM snapshots JOIN pruned_snapshots USING (id) WHERE key = OLD.snapshot_key
)
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;

-- ---- samples ------------------------------------------------------------------------------------

ALTER TABLE samples ADD COLUMN address TEXT CHECK (address IN ('public', 'private'));
-- 1 where a verification measured twice and found that the link has changed its level.
ALTER TABLE samples ADD COLUMN new_level INTEGER NOT NULL DEFAULT 0 CHECK (new_level IN (0, 1));
-- How many intervals of the test the value is the median of; NULL where they were not kept.
ALTER TABLE samples ADD COLUMN intervals INTEGER;
DROP TRIGGER samples_keep_values;
UPDATE samples SET
    address = CASE
        WHEN detail LIKE '%"address": "private"%' THEN 'private'
        WHEN detail LIKE '%"address": "public"%' THEN 'public'
    END,
    new_level = detail LIKE '%"new_level": true%',
    intervals = CASE WHEN json_valid(detail) AND json_type(detail, '$.intervals') = 'integer'
        THEN json_extract(detail, '$.intervals') END
WHERE detail LIKE '%"address": "p%' OR detail LIKE '%"new_level": true%'
    OR detail LIKE '%"intervals": %';
CREATE TRIGGER samples_keep_values BEFORE UPDATE ON samples
BEGIN SELECT RAISE(ABORT, 'samples are append-only'); END;

DROP VIEW measurements;
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
