-- Who leads in a role, and until when by this database's clock. The number grows with each holder;
-- what a holder writes is refused once there is a later one. It is part of a key, so that a
-- transaction that relies on it (FOR KEY SHARE) holds up the next holder, but no renewal.
CREATE TABLE leases (
    role TEXT PRIMARY KEY,
    number BIGINT NOT NULL,
    holder TEXT NOT NULL,
    expires_at_s DOUBLE PRECISION NOT NULL,
    UNIQUE (role, number)
);
