-- Other addresses of sources: what redirected there (`redirects`), or where the source itself redirected to.
CREATE TABLE source_aliases (
    position INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    comparable TEXT NOT NULL,
    url TEXT NOT NULL,
    redirects INTEGER NOT NULL,
    UNIQUE (run_id, comparable),
    FOREIGN KEY (run_id, number) REFERENCES sources (run_id, number) ON DELETE CASCADE
) STRICT;
