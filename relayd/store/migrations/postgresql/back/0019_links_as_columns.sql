CREATE TABLE links (
    snapshot_key BIGINT NOT NULL REFERENCES snapshots,
    src_id INTEGER NOT NULL REFERENCES regions,
    dst_id INTEGER NOT NULL REFERENCES regions,
    rtt_ms_low DOUBLE PRECISION NOT NULL,
    rtt_ms_expected DOUBLE PRECISION NOT NULL,
    rtt_ms_high DOUBLE PRECISION NOT NULL CHECK (rtt_ms_high <> 'NaN'),
    rtt_ms_origin INTEGER NOT NULL,
    rtt_ms_samples INTEGER NOT NULL,
    rtt_ms_links INTEGER NOT NULL,
    rtt_ms_newest_s DOUBLE PRECISION,
    rtt_ms_oldest_s DOUBLE PRECISION,
    per_flow_mbps_low DOUBLE PRECISION NOT NULL,
    per_flow_mbps_expected DOUBLE PRECISION NOT NULL,
    per_flow_mbps_high DOUBLE PRECISION NOT NULL CHECK (per_flow_mbps_high <> 'NaN'),
    per_flow_mbps_origin INTEGER NOT NULL,
    per_flow_mbps_samples INTEGER NOT NULL,
    per_flow_mbps_links INTEGER NOT NULL,
    per_flow_mbps_newest_s DOUBLE PRECISION,
    per_flow_mbps_oldest_s DOUBLE PRECISION,
    aggregate_gbps_low DOUBLE PRECISION NOT NULL,
    aggregate_gbps_expected DOUBLE PRECISION NOT NULL,
    aggregate_gbps_high DOUBLE PRECISION NOT NULL CHECK (aggregate_gbps_high <> 'NaN'),
    aggregate_gbps_origin INTEGER NOT NULL,
    aggregate_gbps_samples INTEGER NOT NULL,
    aggregate_gbps_links INTEGER NOT NULL,
    aggregate_gbps_newest_s DOUBLE PRECISION,
    aggregate_gbps_oldest_s DOUBLE PRECISION,
    loss_pct DOUBLE PRECISION,
    limited_by TEXT NOT NULL DEFAULT 'unknown'
        CHECK (limited_by IN ('vm', 'window', 'path', 'unknown')),
    aggregate_gbps_prior_low DOUBLE PRECISION,
    aggregate_gbps_prior_expected DOUBLE PRECISION,
    aggregate_gbps_prior_high DOUBLE PRECISION,
    aggregate_gbps_prior_memory_years DOUBLE PRECISION,
    address TEXT NOT NULL DEFAULT 'public' CHECK (address IN ('public', 'private')),
    checksum INTEGER,
    PRIMARY KEY (snapshot_key, src_id, dst_id),
    CHECK (rtt_ms_low <= rtt_ms_expected AND rtt_ms_expected <= rtt_ms_high),
    CHECK (per_flow_mbps_low <= per_flow_mbps_expected AND per_flow_mbps_expected <= per_flow_mbps_high),
    CHECK (aggregate_gbps_low <= aggregate_gbps_expected AND aggregate_gbps_expected <= aggregate_gbps_high)
);
CREATE INDEX links_by_destination ON links (snapshot_key, dst_id);

CREATE TABLE other_links (
    snapshot_key BIGINT NOT NULL REFERENCES snapshots,
    src_id INTEGER NOT NULL REFERENCES regions,
    dst_id INTEGER NOT NULL REFERENCES regions,
    rtt_ms_low DOUBLE PRECISION NOT NULL,
    rtt_ms_expected DOUBLE PRECISION NOT NULL,
    rtt_ms_high DOUBLE PRECISION NOT NULL CHECK (rtt_ms_high <> 'NaN'),
    rtt_ms_origin INTEGER NOT NULL,
    rtt_ms_samples INTEGER NOT NULL,
    rtt_ms_links INTEGER NOT NULL,
    rtt_ms_newest_s DOUBLE PRECISION,
    rtt_ms_oldest_s DOUBLE PRECISION,
    per_flow_mbps_low DOUBLE PRECISION NOT NULL,
    per_flow_mbps_expected DOUBLE PRECISION NOT NULL,
    per_flow_mbps_high DOUBLE PRECISION NOT NULL CHECK (per_flow_mbps_high <> 'NaN'),
    per_flow_mbps_origin INTEGER NOT NULL,
    per_flow_mbps_samples INTEGER NOT NULL,
    per_flow_mbps_links INTEGER NOT NULL,
    per_flow_mbps_newest_s DOUBLE PRECISION,
    per_flow_mbps_oldest_s DOUBLE PRECISION,
    aggregate_gbps_low DOUBLE PRECISION NOT NULL,
    aggregate_gbps_expected DOUBLE PRECISION NOT NULL,
    aggregate_gbps_high DOUBLE PRECISION NOT NULL CHECK (aggregate_gbps_high <> 'NaN'),
    aggregate_gbps_origin INTEGER NOT NULL,
    aggregate_gbps_samples INTEGER NOT NULL,
    aggregate_gbps_links INTEGER NOT NULL,
    aggregate_gbps_newest_s DOUBLE PRECISION,
    aggregate_gbps_oldest_s DOUBLE PRECISION,
    loss_pct DOUBLE PRECISION,
    limited_by TEXT NOT NULL DEFAULT 'unknown'
        CHECK (limited_by IN ('vm', 'window', 'path', 'unknown')),
    aggregate_gbps_prior_low DOUBLE PRECISION,
    aggregate_gbps_prior_expected DOUBLE PRECISION,
    aggregate_gbps_prior_high DOUBLE PRECISION,
    aggregate_gbps_prior_memory_years DOUBLE PRECISION,
    address TEXT NOT NULL DEFAULT 'public' CHECK (address IN ('public', 'private')),
    checksum INTEGER,
    PRIMARY KEY (snapshot_key, src_id, dst_id),
    CHECK (rtt_ms_low <= rtt_ms_expected AND rtt_ms_expected <= rtt_ms_high),
    CHECK (per_flow_mbps_low <= per_flow_mbps_expected AND per_flow_mbps_expected <= per_flow_mbps_high),
    CHECK (aggregate_gbps_low <= aggregate_gbps_expected AND aggregate_gbps_expected <= aggregate_gbps_high)
);
CREATE INDEX other_links_by_destination ON other_links (snapshot_key, dst_id);

-- Links are converted here: relayd/store/link_rows.py.

DROP TABLE link_blocks;
CREATE TRIGGER links_keep_values BEFORE UPDATE ON links
    FOR EACH ROW EXECUTE FUNCTION refuse('snapshots are immutable');
CREATE TRIGGER links_stay_out BEFORE INSERT ON links
    FOR EACH ROW EXECUTE FUNCTION stay_out_of_sealed_snapshots();
CREATE TRIGGER links_stay BEFORE DELETE ON links
    FOR EACH ROW EXECUTE FUNCTION stay_unless_snapshot_pruned();
CREATE TRIGGER links_stay_whole BEFORE TRUNCATE ON links
    EXECUTE FUNCTION refuse('snapshots are immutable');
CREATE TRIGGER other_links_keep_values BEFORE UPDATE ON other_links
    FOR EACH ROW EXECUTE FUNCTION refuse('snapshots are immutable');
CREATE TRIGGER other_links_stay_out BEFORE INSERT ON other_links
    FOR EACH ROW EXECUTE FUNCTION stay_out_of_sealed_snapshots();
CREATE TRIGGER other_links_stay BEFORE DELETE ON other_links
    FOR EACH ROW EXECUTE FUNCTION stay_unless_snapshot_pruned();
CREATE TRIGGER other_links_stay_whole BEFORE TRUNCATE ON other_links
    EXECUTE FUNCTION refuse('snapshots are immutable');
