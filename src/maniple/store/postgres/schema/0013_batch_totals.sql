-- The table of store/sqlite/schema/0022_batch_totals.sql; what it means is written there.
CREATE TABLE batch_totals (
    batch_id text NOT NULL REFERENCES batches (batch_id) ON DELETE CASCADE,
    state text NOT NULL,
    items bigint NOT NULL,
    tokens bigint NOT NULL,
    model_calls bigint NOT NULL,
    tool_calls bigint NOT NULL,
    seconds double precision NOT NULL,
    cost double precision NOT NULL,
    PRIMARY KEY (batch_id, state)
);
INSERT INTO batch_totals
SELECT batch_id, state, count(*), sum(tokens), sum(model_calls), sum(tool_calls), sum(seconds), sum(cost)
FROM batch_items GROUP BY batch_id, state;

-- Once for each statement: it locks the rows in the order of the states, so that two never wait for one another.
CREATE FUNCTION count_new_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO batch_totals AS total
    SELECT batch_id, state, count(*), sum(tokens), sum(model_calls), sum(tool_calls), sum(seconds), sum(cost)
    FROM new_items GROUP BY batch_id, state ORDER BY batch_id, state
    ON CONFLICT (batch_id, state) DO UPDATE SET items = total.items + excluded.items,
        tokens = total.tokens + excluded.tokens, model_calls = total.model_calls + excluded.model_calls,
        tool_calls = total.tool_calls + excluded.tool_calls, seconds = total.seconds + excluded.seconds,
        cost = total.cost + excluded.cost;
    RETURN NULL;
END $$;
CREATE FUNCTION count_changed_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO batch_totals AS total
    SELECT batch_id, state, sum(items), sum(tokens), sum(model_calls), sum(tool_calls), sum(seconds), sum(cost)
    FROM (
        SELECT batch_id, state, 1 AS items, tokens, model_calls, tool_calls, seconds, cost FROM new_items
        UNION ALL
        SELECT batch_id, state, -1, -tokens, -model_calls, -tool_calls, -seconds, -cost FROM old_items
    ) changes
    GROUP BY batch_id, state ORDER BY batch_id, state
    ON CONFLICT (batch_id, state) DO UPDATE SET items = total.items + excluded.items,
        tokens = total.tokens + excluded.tokens, model_calls = total.model_calls + excluded.model_calls,
        tool_calls = total.tool_calls + excluded.tool_calls, seconds = total.seconds + excluded.seconds,
        cost = total.cost + excluded.cost;
    RETURN NULL;
END $$;
CREATE TRIGGER count_new_items AFTER INSERT ON batch_items
    REFERENCING NEW TABLE AS new_items FOR EACH STATEMENT EXECUTE FUNCTION count_new_items();
CREATE TRIGGER count_changed_items AFTER UPDATE ON batch_items
    REFERENCING OLD TABLE AS old_items NEW TABLE AS new_items
    FOR EACH STATEMENT EXECUTE FUNCTION count_changed_items();
