-- Transfers that their programs report: what is to be moved, what was expected, how far it is.
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
    moved_gb REAL NOT NULL,
    moved_via TEXT NOT NULL,        -- JSON, GB by relay or 'direct', as last reported
    reported_s REAL,                -- time of the last report
    ended_s REAL,
    heard_s REAL NOT NULL,          -- when the store was told last
    event_id INTEGER                -- of the last event of its progress, which the next replaces
) STRICT;

CREATE INDEX transfers_of_pair ON transfers (src_id, dst_id, ended_s);

CREATE TABLE transfer_reports (
    transfer INTEGER NOT NULL REFERENCES transfers,
    at_s REAL NOT NULL,
    moved_gb REAL NOT NULL,
    PRIMARY KEY (transfer, at_s)
) STRICT, WITHOUT ROWID;
