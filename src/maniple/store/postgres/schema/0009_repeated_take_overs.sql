-- How often in a row a run was taken over from a dead process that had worked on it and come to no new checkpoint, and
-- where the run stood when it was claimed: its newest checkpoint, and its newest event.
ALTER TABLE runs ADD COLUMN repeats integer NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN claimed_checkpoint bigint;
ALTER TABLE runs ADD COLUMN claimed_event bigint;
