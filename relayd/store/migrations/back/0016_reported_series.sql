ALTER TABLE tokens DROP COLUMN max_series;
DROP TABLE reported_series;
