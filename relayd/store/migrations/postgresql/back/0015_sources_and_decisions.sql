DROP VIEW used_samples;
DROP TABLE confirmed_samples;
DROP TABLE retracted_samples;
DROP TABLE sample_decisions;
ALTER TABLE compactions DROP COLUMN source;
ALTER TABLE batches DROP COLUMN source;
