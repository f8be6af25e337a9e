-- What this means is written in store/sqlite/schema/0021_temporary.sql.
ALTER TABLE threads ADD COLUMN temporary_of text NOT NULL DEFAULT '';
CREATE INDEX temporary_threads ON threads (temporary_of) WHERE temporary_of <> '';
