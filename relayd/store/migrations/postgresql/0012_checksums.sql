-- Checksums of rows, by relayd/store/checksums.py: each covers the columns before it. NULL in rows
-- from before this version.

ALTER TABLE batches ADD COLUMN checksum INTEGER;
ALTER TABLE samples ADD COLUMN checksum INTEGER;
ALTER TABLE snapshots ADD COLUMN checksum INTEGER;
ALTER TABLE links ADD COLUMN checksum INTEGER;
ALTER TABLE other_links ADD COLUMN checksum INTEGER;
ALTER TABLE sites ADD COLUMN checksum INTEGER;
ALTER TABLE origins ADD COLUMN checksum INTEGER;
ALTER TABLE verifications ADD COLUMN checksum INTEGER;
