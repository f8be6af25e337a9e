-- Addresses that were asked for and led to a source with another one, or to which a source led: they are cited
-- as it is.
CREATE TABLE source_aliases (
    position INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    comparable TEXT NOT NULL,
    url TEXT NOT NULL,
    UNIQUE (run_id, comparable),
    FOREIGN KEY (run_id, number) REFERENCES sources (run_id, number) ON DELETE CASCADE
) STRICT;
