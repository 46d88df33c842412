-- When a token was last used, to the minute; NULL for never, or not since this version.
ALTER TABLE tokens ADD COLUMN last_used_at_s REAL;
