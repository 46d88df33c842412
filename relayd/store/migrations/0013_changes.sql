-- A token may have a rate of its own; NULL for that of the service's settings, 0 for no limit.
ALTER TABLE tokens ADD COLUMN requests_per_s REAL;

-- Who changed what, beside samples, whose batches say who sent them.
CREATE TABLE changes (
    id INTEGER PRIMARY KEY,
    at_s REAL NOT NULL,
    who TEXT NOT NULL,      -- a token's name, or a user of a machine
    address TEXT NOT NULL,  -- that a request came from; '' for a command
    action TEXT NOT NULL CHECK (action <> ''),  -- such as 'token create'
    subject TEXT NOT NULL   -- what was changed, such as the token's number and name
) STRICT;

CREATE TRIGGER changes_keep_values BEFORE UPDATE ON changes
BEGIN SELECT RAISE(ABORT, 'changes are append-only'); END;
CREATE TRIGGER changes_stay BEFORE DELETE ON changes
BEGIN SELECT RAISE(ABORT, 'changes are append-only'); END;
