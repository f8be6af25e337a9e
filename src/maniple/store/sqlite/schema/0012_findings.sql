-- What members noted while reading: a statement, and the words of the source behind it with their place in its text.
-- A run begins with the findings of the thread's run before it (`inherited`), as it does with its sources.
CREATE TABLE findings (
    position INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    statement TEXT NOT NULL,
    quote TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    span_start INTEGER NOT NULL,
    span_end INTEGER NOT NULL,
    noted_at REAL NOT NULL,
    inherited INTEGER NOT NULL DEFAULT 0,
    UNIQUE (run_id, number, statement),
    FOREIGN KEY (run_id, number) REFERENCES sources (run_id, number) ON DELETE CASCADE
) STRICT;
