-- How many items of a batch are in each state, and what they have used: kept by triggers, so that a look at a batch
-- reads a row for each state instead of all items. Items are deleted with their batch alone, and so are these rows.
CREATE TABLE batch_totals (
    batch_id TEXT NOT NULL REFERENCES batches (batch_id) ON DELETE CASCADE,
    state TEXT NOT NULL,
    items INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    model_calls INTEGER NOT NULL,
    tool_calls INTEGER NOT NULL,
    seconds REAL NOT NULL,
    cost REAL NOT NULL,
    PRIMARY KEY (batch_id, state)
) WITHOUT ROWID;
INSERT INTO batch_totals
SELECT batch_id, state, count(*), sum(tokens), sum(model_calls), sum(tool_calls), sum(seconds), sum(cost)
FROM batch_items GROUP BY batch_id, state;

CREATE TRIGGER count_new_item AFTER INSERT ON batch_items
BEGIN
    INSERT INTO batch_totals
    VALUES (NEW.batch_id, NEW.state, 1, NEW.tokens, NEW.model_calls, NEW.tool_calls, NEW.seconds, NEW.cost)
    ON CONFLICT (batch_id, state) DO UPDATE SET items = items + 1, tokens = tokens + excluded.tokens,
        model_calls = model_calls + excluded.model_calls, tool_calls = tool_calls + excluded.tool_calls,
        seconds = seconds + excluded.seconds, cost = cost + excluded.cost;
END;
CREATE TRIGGER count_changed_item AFTER UPDATE ON batch_items
BEGIN
    UPDATE batch_totals SET items = items - 1, tokens = tokens - OLD.tokens,
        model_calls = model_calls - OLD.model_calls, tool_calls = tool_calls - OLD.tool_calls,
        seconds = seconds - OLD.seconds, cost = cost - OLD.cost
    WHERE batch_id = OLD.batch_id AND state = OLD.state;
    INSERT INTO batch_totals
    VALUES (NEW.batch_id, NEW.state, 1, NEW.tokens, NEW.model_calls, NEW.tool_calls, NEW.seconds, NEW.cost)
    ON CONFLICT (batch_id, state) DO UPDATE SET items = items + 1, tokens = tokens + excluded.tokens,
        model_calls = model_calls + excluded.model_calls, tool_calls = tool_calls + excluded.tool_calls,
        seconds = seconds + excluded.seconds, cost = cost + excluded.cost;
END;
