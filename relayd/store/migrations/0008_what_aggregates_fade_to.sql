-- What would be believed of an aggregate without measurements of its own.

ALTER TABLE links ADD COLUMN aggregate_gbps_prior_low REAL;
ALTER TABLE links ADD COLUMN aggregate_gbps_prior_expected REAL;
ALTER TABLE links ADD COLUMN aggregate_gbps_prior_high REAL;
ALTER TABLE links ADD COLUMN aggregate_gbps_prior_memory_years REAL;
