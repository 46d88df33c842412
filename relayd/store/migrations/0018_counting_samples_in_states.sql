-- States hold the samples that count, so that none of a series without new ones is read.
DELETE FROM metadata WHERE name IN ('series_states_through', 'series_states_made_from');
DROP TABLE series_states;
CREATE TABLE series_states (
    src_id INTEGER NOT NULL REFERENCES regions,
    dst_id INTEGER NOT NULL REFERENCES regions,
    metric_id INTEGER NOT NULL REFERENCES metrics,
    state TEXT NOT NULL,            -- JSON, or '' where its few samples are read
    checksum INTEGER NOT NULL,
    PRIMARY KEY (src_id, dst_id, metric_id)
) STRICT, WITHOUT ROWID;
