-- What a probe that was started and not yet reported may have sent, and what that costs at most.
-- Its campaign has spent that, until it is reported; after a crash nobody knows better.
ALTER TABLE probes ADD COLUMN reserved_gb REAL NOT NULL DEFAULT 0;
ALTER TABLE probes ADD COLUMN reserved_usd REAL NOT NULL DEFAULT 0;
