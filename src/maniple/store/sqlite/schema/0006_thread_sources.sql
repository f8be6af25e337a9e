-- A run begins with the sources of the thread's run before it, under the same numbers (`inherited`), so that a
-- number means one source on the whole thread. Texts stay with the run that read them (`text_run_id`).
ALTER TABLE sources ADD COLUMN inherited INTEGER NOT NULL DEFAULT 0;

CREATE TABLE readings_of_threads (
    position INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    text_run_id TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    UNIQUE (run_id, number, sha256),
    FOREIGN KEY (run_id, number) REFERENCES sources (run_id, number) ON DELETE CASCADE,
    FOREIGN KEY (text_run_id, sha256) REFERENCES source_texts (run_id, sha256) ON DELETE CASCADE
) STRICT;
INSERT INTO readings_of_threads (position, run_id, number, text_run_id, sha256)
    SELECT position, run_id, number, run_id, sha256 FROM readings;
DROP TABLE readings;
ALTER TABLE readings_of_threads RENAME TO readings;
CREATE INDEX readings_by_text ON readings (text_run_id, sha256);
