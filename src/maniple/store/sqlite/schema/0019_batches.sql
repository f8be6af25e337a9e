-- Many tasks that are done as runs under one budget. `request` is the JSON from which each run starts, without its
-- message; `budget` and `rule` (what an answer must be) are JSON. `driver` is the program that starts the runs.
CREATE TABLE batches (
    position INTEGER PRIMARY KEY,
    batch_id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    driver TEXT NOT NULL,
    name TEXT NOT NULL,
    request TEXT NOT NULL,
    budget TEXT NOT NULL,
    rule TEXT NOT NULL,
    parallel INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    created_at REAL NOT NULL,
    is_open INTEGER NOT NULL
);
CREATE INDEX batches_of_owner ON batches (owner, position);
CREATE INDEX batches_open ON batches (driver, position) WHERE is_open = 1;

-- `run_id` is known before the run is started, so that an item that a crash cut off is started once. The amounts are
-- those of all attempts that have ended.
CREATE TABLE batch_items (
    batch_id TEXT NOT NULL REFERENCES batches (batch_id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    input TEXT NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    model_calls INTEGER NOT NULL,
    tool_calls INTEGER NOT NULL,
    seconds REAL NOT NULL,
    cost REAL NOT NULL,
    PRIMARY KEY (batch_id, number)
) WITHOUT ROWID;
CREATE INDEX batch_items_by_state ON batch_items (batch_id, state, number);
