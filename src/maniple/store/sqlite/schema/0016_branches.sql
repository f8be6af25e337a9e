-- A branch is a thread whose first run replaces `branched_run`, a run of the thread `parent_id`; it begins with the runs
-- before that one. `root_id` is the conversation that all of its branches belong to; all three are '' for a conversation.
-- `note` says what of the workspace could not be brought to its state at that run.
ALTER TABLE threads ADD COLUMN parent_id TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN branched_run TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN root_id TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN note TEXT NOT NULL DEFAULT '';
CREATE INDEX threads_of_root ON threads (root_id, position) WHERE root_id <> '';
CREATE INDEX conversations_of_owner ON threads (owner, position) WHERE root_id = '';

-- The question and the answer of each ended run, for the search. Runs that ended before this version are added by the
-- server while it works.
CREATE TABLE run_texts (
    position INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE REFERENCES runs (run_id) ON DELETE CASCADE,
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    is_unspaced INTEGER NOT NULL
) STRICT;
CREATE VIRTUAL TABLE run_words USING fts5(
    question, answer, content = 'run_texts', content_rowid = 'position', tokenize = 'unicode61 remove_diacritics 2',
    prefix = '2 3'
);
-- Chinese, Japanese, Korean and Thai are written without spaces: texts in them are also indexed by three characters.
CREATE VIRTUAL TABLE run_trigrams USING fts5(
    question, answer, content = 'run_texts', content_rowid = 'position', tokenize = 'trigram'
);
CREATE TRIGGER run_texts_added AFTER INSERT ON run_texts BEGIN
    INSERT INTO run_words (rowid, question, answer) VALUES (new.position, new.question, new.answer);
    INSERT INTO run_trigrams (rowid, question, answer)
        SELECT new.position, new.question, new.answer WHERE new.is_unspaced;
END;
CREATE TRIGGER run_texts_deleted AFTER DELETE ON run_texts BEGIN
    INSERT INTO run_words (run_words, rowid, question, answer)
        VALUES ('delete', old.position, old.question, old.answer);
    INSERT INTO run_trigrams (run_trigrams, rowid, question, answer)
        SELECT 'delete', old.position, old.question, old.answer WHERE old.is_unspaced;
END;
