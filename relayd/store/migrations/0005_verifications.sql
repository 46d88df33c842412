-- What plans carried when they were run, against what they promised.

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
