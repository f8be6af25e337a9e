-- Which pages each step of a run's plan tried to read: a step most of whose pages could not be read is a gap.
CREATE TABLE page_attempts (
    position INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    step INTEGER NOT NULL,
    comparable TEXT NOT NULL,
    url TEXT NOT NULL,
    UNIQUE (run_id, step, comparable)
) STRICT;
