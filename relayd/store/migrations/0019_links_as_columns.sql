-- The links of a snapshot as columns, in blocks of 32 x 32 pairs of regions: planner/model/columns.

CREATE TABLE link_blocks (
    snapshot_key INTEGER NOT NULL REFERENCES snapshots,
    in_use INTEGER NOT NULL CHECK (in_use IN (0, 1)),  -- 0: over the other kind of address
    src_block INTEGER NOT NULL,     -- numbers of regions, divided by 32
    dst_block INTEGER NOT NULL,
    links INTEGER NOT NULL,
    content BLOB NOT NULL,
    checksum INTEGER,               -- NULL where the rows that it was made of had none
    PRIMARY KEY (snapshot_key, in_use, src_block, dst_block)
) STRICT;

-- Links are converted here: relayd/store/link_rows.py.

DROP TABLE links;
DROP TABLE other_links;
CREATE TRIGGER link_blocks_keep_values BEFORE UPDATE ON link_blocks
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER link_blocks_stay_out BEFORE INSERT ON link_blocks
WHEN (SELECT links FROM snapshots WHERE key = NEW.snapshot_key) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
CREATE TRIGGER link_blocks_stay BEFORE DELETE ON link_blocks
WHEN NOT EXISTS (
    SELECT 1 FROM snapshots JOIN pruned_snapshots USING (id) WHERE key = OLD.snapshot_key
)
BEGIN SELECT RAISE(ABORT, 'snapshots are immutable'); END;
