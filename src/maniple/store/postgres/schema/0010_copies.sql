-- What these mean is written in store/sqlite/schema/0020_copies.sql.
ALTER TABLE threads ADD COLUMN copied_run text NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN metadata text NOT NULL DEFAULT '{}';
