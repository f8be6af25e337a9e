-- What these mean is written in store/sqlite/schema/0016_branches.sql.
ALTER TABLE threads ADD COLUMN parent_id text NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN branched_run text NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN root_id text NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN note text NOT NULL DEFAULT '';
CREATE INDEX threads_of_root ON threads (root_id, position) WHERE root_id <> '';
CREATE INDEX conversations_of_owner ON threads (owner, position) WHERE root_id = '';

CREATE TABLE run_texts (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL UNIQUE REFERENCES runs (run_id) ON DELETE CASCADE,
    question text NOT NULL,
    answer text NOT NULL,
    is_unspaced boolean NOT NULL,
    words tsvector NOT NULL
);
CREATE INDEX run_texts_by_word ON run_texts USING gin (words);
