-- A thread with `temporary_of` is deleted when the process with this id has gone: its client was there.
ALTER TABLE threads ADD COLUMN temporary_of TEXT NOT NULL DEFAULT '';
CREATE INDEX temporary_threads ON threads (temporary_of) WHERE temporary_of <> '';
