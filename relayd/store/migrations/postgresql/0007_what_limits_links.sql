-- What holds the aggregate throughput of a link where it is.

ALTER TABLE links ADD COLUMN limited_by TEXT NOT NULL DEFAULT 'unknown'
    CHECK (limited_by IN ('vm', 'window', 'path', 'unknown'));
