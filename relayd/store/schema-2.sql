-- Version 2: what limited transfers, and the capacity that those under way hold. New stores get it
-- after schema.sql, those of version 1 when they are first opened for writing.

-- 'network', 'application', 'disk' or 'unknown'
ALTER TABLE transfers ADD COLUMN limited_by TEXT NOT NULL DEFAULT 'unknown';

-- A hold counts while its transfer runs and is reported: relayd/questions/holds.py.
CREATE TABLE holds (
    transfer_number INTEGER NOT NULL REFERENCES transfers (number),
    kind TEXT NOT NULL CHECK (kind IN ('pool', 'vms', 'interconnect')),
    place TEXT NOT NULL,            -- the region of VMs, or the name of an interconnect
    vm_type TEXT NOT NULL,          -- of VMs that were started for it; '' where it is not known
    vms INTEGER NOT NULL,           -- of these
    egress_gbps REAL NOT NULL,      -- of a pool or an interconnect
    ingress_gbps REAL NOT NULL,     -- of a pool
    plan_id TEXT NOT NULL,
    ends_at_s REAL,                 -- as forecast last; NULL where that is not known
    is_lost INTEGER NOT NULL,       -- 1 once others have it, because the transfer fell silent
    PRIMARY KEY (transfer_number, kind, place)
) STRICT;
