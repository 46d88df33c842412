-- Who sent a batch: the token's name and the address; '' for commands on the store itself.

ALTER TABLE batches ADD COLUMN reporter TEXT NOT NULL DEFAULT '';
ALTER TABLE batches ADD COLUMN address TEXT NOT NULL DEFAULT '';
ALTER TABLE batches ADD COLUMN quarantined INTEGER NOT NULL DEFAULT 0;

-- Samples that can't be measurements, each once: kept apart from the others, so that nothing
-- rests on them. Names are spelled out, because these may be anything.
CREATE TABLE quarantined_samples (
    id INTEGER PRIMARY KEY,
    batch_id INTEGER NOT NULL REFERENCES batches,
    digest TEXT NOT NULL UNIQUE,    -- BLAKE2b-128 of the sample, hexadecimal
    reason TEXT NOT NULL,
    src TEXT NOT NULL,
    dst TEXT NOT NULL,
    metric TEXT NOT NULL,
    value REAL NOT NULL,
    measured_at_s REAL NOT NULL,
    sample TEXT NOT NULL            -- all of it, a JSON object
) STRICT;

CREATE TRIGGER quarantined_samples_keep_values BEFORE UPDATE ON quarantined_samples
BEGIN SELECT RAISE(ABORT, 'samples are append-only'); END;
CREATE TRIGGER quarantined_samples_stay BEFORE DELETE ON quarantined_samples
BEGIN SELECT RAISE(ABORT, 'samples are append-only'); END;
