-- What would be believed of an aggregate without measurements of its own.

ALTER TABLE links ADD COLUMN aggregate_gbps_prior_low DOUBLE PRECISION;
ALTER TABLE links ADD COLUMN aggregate_gbps_prior_expected DOUBLE PRECISION;
ALTER TABLE links ADD COLUMN aggregate_gbps_prior_high DOUBLE PRECISION;
ALTER TABLE links ADD COLUMN aggregate_gbps_prior_memory_years DOUBLE PRECISION;
