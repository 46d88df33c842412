-- What the service keeps: who may ask, and what happened.

CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL CHECK (name <> ''),
    digest TEXT NOT NULL UNIQUE,   -- SHA-256 of the token, hexadecimal; the token is not kept
    scopes TEXT NOT NULL,          -- JSON array
    created_at_s REAL NOT NULL,
    expires_at_s REAL,             -- NULL for never
    revoked_at_s REAL
) STRICT;

-- In the order in which readers are told of them; every replica reads the same.
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    at_s REAL NOT NULL,
    kind TEXT NOT NULL CHECK (kind <> ''),  -- such as 'snapshot', 'campaign', 'leg'
    subject TEXT NOT NULL,                  -- what it is about: a snapshot's id, 'src>dst', ...
    detail TEXT NOT NULL                    -- JSON object
) STRICT;
