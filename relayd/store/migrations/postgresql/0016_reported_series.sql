-- Which series each reporter has brought: a metric of a link, over one kind of address. Commands on
-- the store itself are not counted.
CREATE TABLE reported_series (
    source TEXT NOT NULL,           -- as of batches
    src_id BIGINT NOT NULL REFERENCES regions,
    dst_id BIGINT NOT NULL REFERENCES regions,
    metric_id BIGINT NOT NULL REFERENCES metrics,
    private INTEGER NOT NULL CHECK (private IN (0, 1)),
    PRIMARY KEY (source, src_id, dst_id, metric_id, private)
);
INSERT INTO reported_series
SELECT DISTINCT batches.source, src_id, dst_id, metric_id,
    CASE WHEN samples.address = 'private' THEN 1 ELSE 0 END
FROM samples JOIN batches ON batches.id = samples.batch_id
WHERE batches.reporter <> '' OR batches.address <> '';

-- A token may have a limit of its own; NULL for that of the service's settings, 0 for no limit.
ALTER TABLE tokens ADD COLUMN max_series BIGINT;
