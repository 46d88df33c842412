-- Legs are called links, samples have columns for what is queried, and estimates their origin.
--
-- The same tables and columns as on SQLite, whose script says why they are as they are.

ALTER TABLE leg_states RENAME TO link_states;
ALTER INDEX leg_states_pkey RENAME TO link_states_pkey;
UPDATE watch_spending SET kind = 'liveness' WHERE kind = 'light';
ALTER TABLE watch_marks RENAME TO metadata;
ALTER INDEX watch_marks_pkey RENAME TO metadata_pkey;

DROP TRIGGER snapshots_keep_values ON snapshots;
ALTER TABLE snapshots RENAME COLUMN legs TO links;

CREATE TABLE origins (
    snapshot_key BIGINT NOT NULL REFERENCES snapshots,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('measured', 'inferred', 'baseline')),
    method TEXT NOT NULL,
    address TEXT CHECK (address IN ('public', 'private', 'both')),
    figures TEXT,
    PRIMARY KEY (snapshot_key, number)
);

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
    PRIMARY KEY (snapshot_key, src_id, dst_id),
    CHECK (rtt_ms_low <= rtt_ms_expected AND rtt_ms_expected <= rtt_ms_high),
    CHECK (per_flow_mbps_low <= per_flow_mbps_expected AND per_flow_mbps_expected <= per_flow_mbps_high),
    CHECK (aggregate_gbps_low <= aggregate_gbps_expected AND aggregate_gbps_expected <= aggregate_gbps_high)
);

CREATE TABLE placed (
    snapshot_key BIGINT NOT NULL REFERENCES snapshots,
    position INTEGER NOT NULL,
    region_id INTEGER NOT NULL REFERENCES regions,
    vm_type TEXT NOT NULL,
    egress_gbps_low DOUBLE PRECISION NOT NULL,
    egress_gbps_expected DOUBLE PRECISION NOT NULL,
    egress_gbps_high DOUBLE PRECISION NOT NULL CHECK (egress_gbps_high <> 'NaN'),
    egress_gbps_origin INTEGER NOT NULL,
    egress_gbps_samples INTEGER NOT NULL,
    egress_gbps_links INTEGER NOT NULL,
    egress_gbps_newest_s DOUBLE PRECISION,
    egress_gbps_oldest_s DOUBLE PRECISION,
    ingress_gbps_low DOUBLE PRECISION NOT NULL,
    ingress_gbps_expected DOUBLE PRECISION NOT NULL,
    ingress_gbps_high DOUBLE PRECISION NOT NULL CHECK (ingress_gbps_high <> 'NaN'),
    ingress_gbps_origin INTEGER NOT NULL,
    ingress_gbps_samples INTEGER NOT NULL,
    ingress_gbps_links INTEGER NOT NULL,
    ingress_gbps_newest_s DOUBLE PRECISION,
    ingress_gbps_oldest_s DOUBLE PRECISION,
    window_mb_low DOUBLE PRECISION NOT NULL,
    window_mb_expected DOUBLE PRECISION NOT NULL,
    window_mb_high DOUBLE PRECISION NOT NULL CHECK (window_mb_high <> 'NaN'),
    window_mb_origin INTEGER NOT NULL,
    window_mb_samples INTEGER NOT NULL,
    window_mb_links INTEGER NOT NULL,
    window_mb_newest_s DOUBLE PRECISION,
    window_mb_oldest_s DOUBLE PRECISION,
    PRIMARY KEY (snapshot_key, position),
    UNIQUE (snapshot_key, region_id),
    CHECK (egress_gbps_low <= egress_gbps_expected AND egress_gbps_expected <= egress_gbps_high),
    CHECK (ingress_gbps_low <= ingress_gbps_expected AND ingress_gbps_expected <= ingress_gbps_high),
    CHECK (window_mb_low <= window_mb_expected AND window_mb_expected <= window_mb_high)
);

-- What earlier versions have kept of an origin: its kind, and a sentence.
CREATE TEMPORARY TABLE sentences (
    snapshot_key BIGINT,
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
    CASE WHEN sentence <> '' THEN json_build_object('note', sentence)::text END
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
ALTER INDEX placed_pkey RENAME TO sites_pkey;
ALTER INDEX placed_snapshot_key_region_id_key RENAME TO sites_snapshot_key_region_id_key;

CREATE TRIGGER snapshots_keep_values BEFORE UPDATE ON snapshots
    FOR EACH ROW WHEN (OLD.links IS NOT NULL)
    EXECUTE FUNCTION refuse('snapshots are immutable');
CREATE OR REPLACE FUNCTION stay_out_of_sealed_snapshots() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM snapshots WHERE key = NEW.snapshot_key AND links IS NOT NULL) THEN
        RAISE EXCEPTION 'snapshots are immutable' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER links_keep_values BEFORE UPDATE ON links
    FOR EACH ROW EXECUTE FUNCTION refuse('snapshots are immutable');
CREATE TRIGGER links_stay_out BEFORE INSERT ON links
    FOR EACH ROW EXECUTE FUNCTION stay_out_of_sealed_snapshots();
CREATE TRIGGER links_stay BEFORE DELETE ON links
    FOR EACH ROW EXECUTE FUNCTION stay_unless_snapshot_pruned();
CREATE TRIGGER links_stay_whole BEFORE TRUNCATE ON links
    EXECUTE FUNCTION refuse('snapshots are immutable');
CREATE TRIGGER sites_keep_values BEFORE UPDATE ON sites
    FOR EACH ROW EXECUTE FUNCTION refuse('snapshots are immutable');
CREATE TRIGGER sites_stay_out BEFORE INSERT ON sites
    FOR EACH ROW EXECUTE FUNCTION stay_out_of_sealed_snapshots();
CREATE TRIGGER sites_stay BEFORE DELETE ON sites
    FOR EACH ROW EXECUTE FUNCTION stay_unless_snapshot_pruned();
CREATE TRIGGER sites_stay_whole BEFORE TRUNCATE ON sites
    EXECUTE FUNCTION refuse('snapshots are immutable');
CREATE TRIGGER origins_keep_values BEFORE UPDATE ON origins
    FOR EACH ROW EXECUTE FUNCTION refuse('snapshots are immutable');
CREATE TRIGGER origins_stay_out BEFORE INSERT ON origins
    FOR EACH ROW EXECUTE FUNCTION stay_out_of_sealed_snapshots();
CREATE TRIGGER origins_stay BEFORE DELETE ON origins
    FOR EACH ROW EXECUTE FUNCTION stay_unless_snapshot_pruned();
CREATE TRIGGER origins_stay_whole BEFORE TRUNCATE ON origins
    EXECUTE FUNCTION refuse('snapshots are immutable');

ALTER TABLE samples ADD COLUMN address TEXT CHECK (address IN ('public', 'private'));
ALTER TABLE samples
    ADD COLUMN new_level SMALLINT NOT NULL DEFAULT 0 CHECK (new_level IN (0, 1));
ALTER TABLE samples ADD COLUMN intervals INTEGER;
DROP TRIGGER samples_keep_values ON samples;
UPDATE samples SET
    address = CASE
        WHEN detail LIKE '%"address": "private"%' THEN 'private'
        WHEN detail LIKE '%"address": "public"%' THEN 'public'
    END,
    new_level = CASE WHEN detail LIKE '%"new_level": true%' THEN 1 ELSE 0 END,
    intervals = CAST(substring(detail FROM '"intervals": ([0-9]{1,9})[,}]') AS INTEGER)
WHERE detail LIKE '%"address": "p%' OR detail LIKE '%"new_level": true%'
    OR detail LIKE '%"intervals": %';
CREATE TRIGGER samples_keep_values BEFORE UPDATE ON samples
    FOR EACH ROW EXECUTE FUNCTION refuse('samples are append-only');

DROP VIEW measurements;
CREATE VIEW measurements AS
SELECT
    samples.id AS id,
    src.name AS src,
    dst.name AS dst,
    metrics.name AS metric,
    samples.value AS value,
    -- Beyond these years there is no date to write, on SQLite either.
    CASE WHEN samples.measured_at_s BETWEEN -62167219200 AND 253402300799 THEN
        to_char(to_timestamp(samples.measured_at_s) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')
    END AS measured_at,
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
