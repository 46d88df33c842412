-- Campaigns: what was to be probed and what became of it, so that one can go on after anything.

-- Names this store to the hosts it measures: what a killed campaign left there is found by it.
CREATE TABLE controller (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL
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
    batch_id INTEGER REFERENCES batches -- that holds its samples
) STRICT;

CREATE INDEX probes_by_campaign ON probes (campaign_id);

-- A probe that is done stays done: its samples count once.
CREATE TRIGGER probes_stay_done BEFORE UPDATE ON probes WHEN OLD.status = 'done'
BEGIN SELECT RAISE(ABORT, 'the probe is done'); END;
