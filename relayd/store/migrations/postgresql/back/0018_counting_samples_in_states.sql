DELETE FROM metadata WHERE name IN ('series_states_through', 'series_states_made_from');
DROP TABLE series_states;
CREATE TABLE series_states (
    src_id INTEGER NOT NULL REFERENCES regions,
    dst_id INTEGER NOT NULL REFERENCES regions,
    metric_id INTEGER NOT NULL REFERENCES metrics,
    since_s DOUBLE PRECISION,       -- older samples need not be read; NULL where all are
    state TEXT NOT NULL,            -- JSON, or '' where all are read
    checksum INTEGER NOT NULL,
    PRIMARY KEY (src_id, dst_id, metric_id)
);
