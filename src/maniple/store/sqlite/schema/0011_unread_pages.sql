-- Addresses that a run tried to read in vain: they answered with an error, a wall or nothing. They are no sources.
CREATE TABLE unread_pages (
    position INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    comparable TEXT NOT NULL,
    url TEXT NOT NULL,
    reason TEXT NOT NULL,
    tried_at REAL NOT NULL,
    UNIQUE (run_id, comparable)
) STRICT;
