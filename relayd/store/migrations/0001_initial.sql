-- Samples: one measurement a row, append-only, with where each came from.
--
-- Names are kept once in small tables, so that a sample takes about 40 bytes.

CREATE TABLE regions (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE CHECK (name <> '')
) STRICT;

CREATE TABLE metrics (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- How a sample was taken: the tool, and the zones and VM types at both ends.
CREATE TABLE setups (
    id INTEGER PRIMARY KEY,
    tool TEXT NOT NULL,
    src_zone TEXT NOT NULL,
    dst_zone TEXT NOT NULL,
    src_vm TEXT NOT NULL,
    dst_vm TEXT NOT NULL,
    UNIQUE (tool, src_zone, dst_zone, src_vm, dst_vm)
) STRICT;

-- One file imported, or one group of live measurements. The last four columns are NULL only
-- inside the transaction that adds the batch; filling them in seals it.
CREATE TABLE batches (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,            -- the file's name, or what was measured live
    format TEXT NOT NULL,          -- as in `relayd import FORMAT`, or 'live'
    digest TEXT,                   -- BLAKE2b-256 of the file's content, hexadecimal
    options TEXT NOT NULL,         -- JSON object
    relayd_version TEXT NOT NULL,
    imported_at_s REAL NOT NULL,
    last_sample_id INTEGER,
    accepted INTEGER,
    duplicates INTEGER,
    skipped TEXT                   -- JSON object: reason -> {"total", "first_rows"}
) STRICT;

-- The values of a sample are its key: a row that is already there is a duplicate, exactly, with
-- no digest of it to compute or to collide. The order of the key is the order in which estimates
-- read (pair by pair, oldest first), so the table needs no other index. Zero connections or
-- seconds mean that the notion does not apply.
CREATE TABLE samples (
    src_id INTEGER NOT NULL REFERENCES regions,
    dst_id INTEGER NOT NULL REFERENCES regions,
    metric_id INTEGER NOT NULL REFERENCES metrics,
    measured_at_s REAL NOT NULL CHECK (measured_at_s > -9e999 AND measured_at_s < 9e999),
    value REAL NOT NULL CHECK (value >= 0 AND value < 9e999),
    connections INTEGER NOT NULL CHECK (connections >= 0),
    duration_s REAL NOT NULL CHECK (duration_s >= 0 AND duration_s < 9e999),
    warmed_up INTEGER NOT NULL CHECK (warmed_up IN (0, 1)),
    setup_id INTEGER NOT NULL REFERENCES setups,
    detail_digest INTEGER NOT NULL, -- first 8 bytes of BLAKE2b of detail; 0 for none
    detail TEXT NOT NULL,           -- JSON object with what else the tool said, or ''
    batch_id INTEGER NOT NULL REFERENCES batches,
    id INTEGER NOT NULL,            -- ascending in the order of arrival; may have gaps
    PRIMARY KEY (src_id, dst_id, metric_id, measured_at_s, value, connections, duration_s,
                 warmed_up, setup_id, detail_digest)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER samples_keep_values BEFORE UPDATE ON samples
BEGIN SELECT RAISE(ABORT, 'samples are append-only'); END;
CREATE TRIGGER samples_stay BEFORE DELETE ON samples
BEGIN SELECT RAISE(ABORT, 'samples are append-only'); END;
CREATE TRIGGER batches_keep_values BEFORE UPDATE ON batches WHEN OLD.accepted IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'batches are append-only'); END;
CREATE TRIGGER batches_stay BEFORE DELETE ON batches
BEGIN SELECT RAISE(ABORT, 'batches are append-only'); END;
CREATE TRIGGER regions_keep_names BEFORE UPDATE ON regions
BEGIN SELECT RAISE(ABORT, 'regions are append-only'); END;
CREATE TRIGGER metrics_keep_names BEFORE UPDATE ON metrics
BEGIN SELECT RAISE(ABORT, 'metrics are append-only'); END;
CREATE TRIGGER setups_keep_values BEFORE UPDATE ON setups
BEGIN SELECT RAISE(ABORT, 'setups are append-only'); END;

-- Samples with every name spelled out, for people.
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
    batches.name AS batch
FROM samples
JOIN regions AS src ON src.id = samples.src_id
JOIN regions AS dst ON dst.id = samples.dst_id
JOIN metrics ON metrics.id = samples.metric_id
JOIN setups ON setups.id = samples.setup_id
JOIN batches ON batches.id = samples.batch_id;

-- Snapshots: immutable graphs of estimates. As with batches, the two counts are filled in last.
CREATE TABLE snapshots (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE CHECK (id <> ''),
    as_of_s REAL NOT NULL,
    created_at_s REAL NOT NULL,
    source TEXT NOT NULL,
    catalogue_digest TEXT NOT NULL,
    samples_through INTEGER NOT NULL,
    legs INTEGER,
    sites INTEGER
) STRICT;

-- What permits the removal of a snapshot, and tells a plan that names it where it went.
CREATE TABLE pruned_snapshots (
    id TEXT PRIMARY KEY,
    pruned_at_s REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE legs (
    snapshot_key INTEGER NOT NULL REFERENCES snapshots,
    src_id INTEGER NOT NULL REFERENCES regions,
    dst_id INTEGER NOT NULL REFERENCES regions,
    rtt_ms_low REAL NOT NULL,
    rtt_ms_expected REAL NOT NULL,
    rtt_ms_high REAL NOT NULL,
    rtt_ms_source TEXT NOT NULL CHECK (rtt_ms_source IN ('measured', 'inferred', 'baseline')),
    rtt_ms_measured_at_s REAL,
    rtt_ms_samples INTEGER NOT NULL,
    rtt_ms_basis TEXT,
    per_flow_mbps_low REAL NOT NULL,
    per_flow_mbps_expected REAL NOT NULL,
    per_flow_mbps_high REAL NOT NULL,
    per_flow_mbps_source TEXT NOT NULL
        CHECK (per_flow_mbps_source IN ('measured', 'inferred', 'baseline')),
    per_flow_mbps_measured_at_s REAL,
    per_flow_mbps_samples INTEGER NOT NULL,
    per_flow_mbps_basis TEXT,
    aggregate_gbps_low REAL NOT NULL,
    aggregate_gbps_expected REAL NOT NULL,
    aggregate_gbps_high REAL NOT NULL,
    aggregate_gbps_source TEXT NOT NULL
        CHECK (aggregate_gbps_source IN ('measured', 'inferred', 'baseline')),
    aggregate_gbps_measured_at_s REAL,
    aggregate_gbps_samples INTEGER NOT NULL,
    aggregate_gbps_basis TEXT,
    loss_pct REAL,
    PRIMARY KEY (snapshot_key, src_id, dst_id),
    CHECK (rtt_ms_low <= rtt_ms_expected AND rtt_ms_expected <= rtt_ms_high),
    CHECK (per_flow_mbps_low <= per_flow_mbps_expected
           AND per_flow_mbps_expected <= per_flow_mbps_high),
    CHECK (aggregate_gbps_low <= aggregate_gbps_expected
           AND aggregate_gbps_expected <= aggregate_gbps_high)
) STRICT, WITHOUT ROWID;

CREATE INDEX legs_by_destination ON legs (snapshot_key, dst_id);

CREATE TABLE sites (
    snapshot_key INTEGER NOT NULL REFERENCES snapshots,
    position INTEGER NOT NULL,
    region_id INTEGER NOT NULL REFERENCES regions,
    vm_type TEXT NOT NULL,
    egress_gbps_low REAL NOT NULL,
    egress_gbps_expected REAL NOT NULL,
    egress_gbps_high REAL NOT NULL,
    egress_gbps_source TEXT NOT NULL
        CHECK (egress_gbps_source IN ('measured', 'inferred', 'baseline')),
    egress_gbps_measured_at_s REAL,
    egress_gbps_samples INTEGER NOT NULL,
    egress_gbps_basis TEXT,
    ingress_gbps_low REAL NOT NULL,
    ingress_gbps_expected REAL NOT NULL,
    ingress_gbps_high REAL NOT NULL,
    ingress_gbps_source TEXT NOT NULL
        CHECK (ingress_gbps_source IN ('measured', 'inferred', 'baseline')),
    ingress_gbps_measured_at_s REAL,
    ingress_gbps_samples INTEGER NOT NULL,
    ingress_gbps_basis TEXT,
    window_mb_low REAL NOT NULL,
    window_mb_expected REAL NOT NULL,
    window_mb_high REAL NOT NULL,
    window_mb_source TEXT NOT NULL
        CHECK (window_mb_source IN ('measured', 'inferred', 'baseline')),
    window_mb_measured_at_s REAL,
    window_mb_samples INTEGER NOT NULL,
    window_mb_basis TEXT,
    PRIMARY KEY (snapshot_key, position),
    UNIQUE (snapshot_key, region_id),
    CHECK (egress_gbps_low <= egress_gbps_expected AND egress_gbps_expected <= egress_gbps_high),
    CHECK (ingress_gbps_low <= ingress_gbps_expected
           AND ingress_gbps_expected <= ingress_gbps_high),
    CHECK (window_mb_low <= window_mb_expected AND window_mb_expected <= window_mb_high)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER snapshots_keep_values BEFORE UPDATE ON snapshots WHEN OLD.legs IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER legs_keep_values BEFORE UPDATE ON legs
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER sites_keep_values BEFORE UPDATE ON sites
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;

CREATE TRIGGER legs_stay_out BEFORE INSERT ON legs
WHEN (SELECT legs FROM snapshots WHERE key = NEW.snapshot_key) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER sites_stay_out BEFORE INSERT ON sites
WHEN (SELECT sites FROM snapshots WHERE key = NEW.snapshot_key) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;

CREATE TRIGGER snapshots_stay BEFORE DELETE ON snapshots
WHEN NOT EXISTS (SELECT 1 FROM pruned_snapshots WHERE id = OLD.id)
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER legs_stay BEFORE DELETE ON legs
WHEN NOT EXISTS (
    SELECT 1 FROM snapshots JOIN pruned_snapshots USING (id) WHERE key = OLD.snapshot_key
)
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER sites_stay BEFORE DELETE ON sites
WHEN NOT EXISTS (
    SELECT 1 FROM snapshots JOIN pruned_snapshots USING (id) WHERE key = OLD.snapshot_key
)
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
