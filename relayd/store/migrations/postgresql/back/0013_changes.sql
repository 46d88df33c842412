DROP TABLE changes;
ALTER TABLE tokens DROP COLUMN requests_per_s;
