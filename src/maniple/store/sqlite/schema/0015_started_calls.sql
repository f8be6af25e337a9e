-- When the work of a tool call began: a call that was recorded, but had not begun, had no effect and is simply made.
ALTER TABLE tool_calls ADD COLUMN started_at REAL;
-- Earlier versions did not record it: each of their calls may have had an effect.
UPDATE tool_calls SET started_at = begun_at;
