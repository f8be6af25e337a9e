-- The tables of store/sqlite/schema/0019_batches.sql; what they mean is written there.
CREATE TABLE batches (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    batch_id text NOT NULL UNIQUE,
    owner text NOT NULL,
    driver text NOT NULL,
    name text NOT NULL,
    request text NOT NULL,
    budget text NOT NULL,
    rule text NOT NULL,
    parallel bigint NOT NULL,
    attempts bigint NOT NULL,
    created_at double precision NOT NULL,
    is_open bigint NOT NULL
);
CREATE INDEX batches_of_owner ON batches (owner, position);
CREATE INDEX batches_open ON batches (driver, position) WHERE is_open = 1;

CREATE TABLE batch_items (
    batch_id text NOT NULL REFERENCES batches (batch_id) ON DELETE CASCADE,
    number bigint NOT NULL,
    input text NOT NULL,
    state text NOT NULL,
    attempt bigint NOT NULL,
    run_id text NOT NULL,
    reason text NOT NULL,
    tokens bigint NOT NULL,
    model_calls bigint NOT NULL,
    tool_calls bigint NOT NULL,
    seconds double precision NOT NULL,
    cost double precision NOT NULL,
    PRIMARY KEY (batch_id, number)
);
CREATE INDEX batch_items_by_state ON batch_items (batch_id, state, number);
