-- What an operator decided about samples in quarantine: to accept them, so that they count as the
-- own prober's, or to reject them for good. One that was rejected may be accepted later.
CREATE TABLE quarantine_decisions (
    sample_id BIGINT NOT NULL REFERENCES quarantined_samples,
    decision TEXT NOT NULL CHECK (decision IN ('accept', 'reject')),
    at_s DOUBLE PRECISION NOT NULL,
    who TEXT NOT NULL,
    reason TEXT NOT NULL,
    batch_id BIGINT REFERENCES batches,    -- that has it among the samples; NULL where rejected
    PRIMARY KEY (sample_id, decision)
);

CREATE TRIGGER quarantine_decisions_keep_values BEFORE UPDATE ON quarantine_decisions
    FOR EACH ROW EXECUTE FUNCTION refuse('decisions are append-only');
CREATE TRIGGER quarantine_decisions_stay BEFORE DELETE ON quarantine_decisions
    FOR EACH ROW EXECUTE FUNCTION refuse('decisions are append-only');
