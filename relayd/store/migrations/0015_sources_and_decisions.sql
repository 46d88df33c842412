-- Who reported the samples of a batch: '' for this store's own prober and what its operator trusts.

DROP TRIGGER batches_keep_values;
ALTER TABLE batches ADD COLUMN source TEXT NOT NULL DEFAULT '';
UPDATE batches SET source = CASE
    WHEN reporter <> '' THEN 'token ' || reporter
    WHEN address <> '' THEN 'address ' || address
    WHEN format <> 'live' AND options NOT LIKE '%"trust": true%' THEN 'files'
    WHEN format = 'live' AND name = 'service' THEN 'service'
    ELSE ''
END;
CREATE TRIGGER batches_keep_values BEFORE UPDATE ON batches WHEN OLD.accepted IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'batches are append-only'); END;
-- Whose samples were summarised; '' before this version.
ALTER TABLE compactions ADD COLUMN source TEXT NOT NULL DEFAULT '';

-- What an operator decided about samples that are there: to retract them, to restore retracted
-- ones, or to count them as the own prober's.
CREATE TABLE sample_decisions (
    id INTEGER PRIMARY KEY,
    decision TEXT NOT NULL CHECK (decision IN ('retract', 'restore', 'confirm')),
    at_s REAL NOT NULL,
    who TEXT NOT NULL,
    reason TEXT NOT NULL,
    selection TEXT NOT NULL,        -- JSON object: which samples were meant
    samples INTEGER NOT NULL        -- how many these were
) STRICT;
CREATE TABLE retracted_samples (
    sample_id INTEGER NOT NULL,
    decision_id INTEGER NOT NULL REFERENCES sample_decisions,
    restored_by INTEGER REFERENCES sample_decisions,    -- NULL while it is retracted
    PRIMARY KEY (sample_id, decision_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE confirmed_samples (
    sample_id INTEGER PRIMARY KEY,
    decision_id INTEGER NOT NULL REFERENCES sample_decisions
) STRICT;

CREATE TRIGGER sample_decisions_keep_values BEFORE UPDATE ON sample_decisions
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER sample_decisions_stay BEFORE DELETE ON sample_decisions
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER retracted_samples_keep_values BEFORE UPDATE ON retracted_samples
WHEN OLD.restored_by IS NOT NULL OR NEW.restored_by IS NULL OR NEW.sample_id <> OLD.sample_id
    OR NEW.decision_id <> OLD.decision_id
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER retracted_samples_stay BEFORE DELETE ON retracted_samples
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER confirmed_samples_keep_values BEFORE UPDATE ON confirmed_samples
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER confirmed_samples_stay BEFORE DELETE ON confirmed_samples
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;

-- The samples that are not retracted: what everything but the list of decisions reads.
CREATE VIEW used_samples AS
SELECT * FROM samples WHERE NOT EXISTS (
    SELECT 1 FROM retracted_samples WHERE sample_id = samples.id AND restored_by IS NULL
);
