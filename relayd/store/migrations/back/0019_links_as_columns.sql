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
    limited_by TEXT NOT NULL DEFAULT 'unknown'
        CHECK (limited_by IN ('vm', 'window', 'path', 'unknown')),
    aggregate_gbps_prior_low REAL,
    aggregate_gbps_prior_expected REAL,
    aggregate_gbps_prior_high REAL,
    aggregate_gbps_prior_memory_years REAL,
    address TEXT NOT NULL DEFAULT 'public' CHECK (address IN ('public', 'private')),
    checksum INTEGER,
    PRIMARY KEY (snapshot_key, src_id, dst_id),
    CHECK (rtt_ms_low <= rtt_ms_expected AND rtt_ms_expected <= rtt_ms_high),
    CHECK (per_flow_mbps_low <= per_flow_mbps_expected AND per_flow_mbps_expected <= per_flow_mbps_high),
    CHECK (aggregate_gbps_low <= aggregate_gbps_expected AND aggregate_gbps_expected <= aggregate_gbps_high)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_destination ON links (snapshot_key, dst_id);

CREATE TABLE other_links (
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
    limited_by TEXT NOT NULL DEFAULT 'unknown'
        CHECK (limited_by IN ('vm', 'window', 'path', 'unknown')),
    aggregate_gbps_prior_low REAL,
    aggregate_gbps_prior_expected REAL,
    aggregate_gbps_prior_high REAL,
    aggregate_gbps_prior_memory_years REAL,
    address TEXT NOT NULL DEFAULT 'public' CHECK (address IN ('public', 'private')),
    checksum INTEGER,
    PRIMARY KEY (snapshot_key, src_id, dst_id),
    CHECK (rtt_ms_low <= rtt_ms_expected AND rtt_ms_expected <= rtt_ms_high),
    CHECK (per_flow_mbps_low <= per_flow_mbps_expected AND per_flow_mbps_expected <= per_flow_mbps_high),
    CHECK (aggregate_gbps_low <= aggregate_gbps_expected AND aggregate_gbps_expected <= aggregate_gbps_high)
) STRICT, WITHOUT ROWID;
CREATE INDEX other_links_by_destination ON other_links (snapshot_key, dst_id);

-- Links are converted here: relayd/store/link_rows.py.

DROP TABLE link_blocks;
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
CREATE TRIGGER other_links_keep_values BEFORE UPDATE ON other_links
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER other_links_stay_out BEFORE INSERT ON other_links
WHEN (SELECT links FROM snapshots WHERE key = NEW.snapshot_key) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER other_links_stay BEFORE DELETE ON other_links
WHEN NOT EXISTS (
    SELECT 1 FROM snapshots JOIN pruned_snapshots USING (id) WHERE key = OLD.snapshot_key
)
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
