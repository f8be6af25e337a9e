-- A copy is a branch that begins with the runs of the thread `parent_id` up to `copied_run` instead of before
-- `branched_run`. `metadata` is a JSON object, what a client of another protocol wrote on the thread.
ALTER TABLE threads ADD COLUMN copied_run TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
