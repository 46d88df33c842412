-- Who leads in a role, and until when by this database's clock. The number grows with each holder;
-- what a holder writes is refused once there is a later one.
CREATE TABLE leases (
    role TEXT PRIMARY KEY NOT NULL,
    number INTEGER NOT NULL,
    holder TEXT NOT NULL,
    expires_at_s REAL NOT NULL,
    UNIQUE (role, number)
) STRICT;
