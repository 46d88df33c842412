ALTER TABLE verifications DROP COLUMN checksum;
ALTER TABLE origins DROP COLUMN checksum;
ALTER TABLE sites DROP COLUMN checksum;
ALTER TABLE other_links DROP COLUMN checksum;
ALTER TABLE links DROP COLUMN checksum;
ALTER TABLE snapshots DROP COLUMN checksum;
ALTER TABLE samples DROP COLUMN checksum;
ALTER TABLE batches DROP COLUMN checksum;
