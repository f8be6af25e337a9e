-- What runs have read. `number` is what reports cite; `comparable` is the form of the address by which two
-- spellings of one are the same. A text is kept once for a run, however many addresses gave it; `characters`
-- stands before `body`, so that adding them up reads no text.
CREATE TABLE sources (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    comparable TEXT NOT NULL,
    url TEXT NOT NULL,
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    retrieved_at REAL NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (run_id, number),
    UNIQUE (run_id, comparable)
) STRICT;

CREATE TABLE source_texts (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    characters INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run_id, sha256)
) STRICT;

CREATE TABLE readings (
    position INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    UNIQUE (run_id, number, sha256),
    FOREIGN KEY (run_id, number) REFERENCES sources (run_id, number) ON DELETE CASCADE,
    FOREIGN KEY (run_id, sha256) REFERENCES source_texts (run_id, sha256) ON DELETE CASCADE
) STRICT;
