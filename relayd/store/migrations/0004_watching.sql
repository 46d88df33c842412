-- Continuous operation: what is wrong with legs now, what was spent, and samples made small.

-- Legs that are not as usual; a leg that is as usual has no row.
CREATE TABLE leg_states (
    src_id INTEGER NOT NULL REFERENCES regions,
    dst_id INTEGER NOT NULL REFERENCES regions,
    condition TEXT NOT NULL CHECK (condition IN ('degraded', 'down')),
    since_s REAL NOT NULL,
    reason TEXT NOT NULL,
    rtt_ms REAL,                   -- now, where it is what degrades the leg
    loss_share REAL NOT NULL CHECK (loss_share >= 0 AND loss_share <= 1),
    rate_share REAL NOT NULL CHECK (rate_share >= 0 AND rate_share <= 1),
    valid_until_s REAL NOT NULL,   -- a watcher that has died must not be believed for ever
    health TEXT NOT NULL,          -- JSON object: what the watcher goes on from after a restart
    PRIMARY KEY (src_id, dst_id)
) STRICT, WITHOUT ROWID;

-- By UTC day. What is reserved counts as spent until it is settled, so that a crash can't lead to
-- spending twice.
CREATE TABLE watch_spending (
    day TEXT NOT NULL,             -- YYYY-MM-DD
    kind TEXT NOT NULL,            -- 'light' or 'campaign'
    reserved_usd REAL NOT NULL DEFAULT 0,
    spent_usd REAL NOT NULL DEFAULT 0,
    sent_gb REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (day, kind)
) STRICT, WITHOUT ROWID;

-- When things were last done, or are next due; and how far events were told to the webhook.
CREATE TABLE watch_marks (
    name TEXT PRIMARY KEY,
    value REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- Changes of level: samples from before no longer count for estimates.
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

-- One run of making old samples small. The counts are NULL only inside its transaction; filling
-- them in seals it, and is refused unless they are the sums of its summaries.
CREATE TABLE compactions (
    id INTEGER PRIMARY KEY,
    at_s REAL NOT NULL,
    older_than_s REAL NOT NULL,
    samples INTEGER,
    summaries INTEGER
) STRICT;

-- Old samples of one leg, metric and way of measuring, an hour or a day of them a row.
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
WHEN OLD.samples IS NOT NULL
    OR NEW.samples IS NOT (
        SELECT coalesce(sum(samples), 0) FROM sample_summaries WHERE compaction_id = OLD.id)
    OR NEW.summaries IS NOT (
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
DROP TRIGGER samples_stay;
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
