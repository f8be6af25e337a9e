-- What was sent to a run: messages, changes of its plan, answers, retries, a cancellation. A row is never
-- rewritten; `reply` is set once. Earlier versions rewrote it into the request each time.
CREATE TABLE run_inputs (
    position INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    input_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    sender TEXT NOT NULL,
    content TEXT NOT NULL,
    at REAL NOT NULL,
    reply TEXT,
    UNIQUE (run_id, input_id)
) STRICT;
ALTER TABLE runs ADD COLUMN stalls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;

CREATE TEMP VIEW readable AS
    SELECT run_id, created_at, CASE WHEN json_valid(request) THEN request ELSE '{}' END AS request FROM runs;

INSERT OR IGNORE INTO run_inputs (run_id, input_id, kind, sender, content, at, reply)
    SELECT run_id, json_extract(one.value, '$.message_id'), 'message', 'user',
        json_object('text', json_extract(one.value, '$.text')), created_at,
        CASE WHEN json_type(one.value, '$.decision') = 'object' THEN json_object(
            'disposition', json_extract(one.value, '$.decision.disposition'),
            'text', json_extract(one.value, '$.decision.reply'),
            'steps', json_extract(one.value, '$.decision.steps'))
        END
    FROM readable, json_each(request, '$.user_messages') one;

-- A value of json_each is JSON text for arrays and objects alone.
INSERT OR IGNORE INTO run_inputs (run_id, input_id, kind, sender, content, at, reply)
    SELECT run_id, one.key, 'step_answer', 'user',
        '{"question":' || json_quote(one.key) || ',"interrupt_id":"","answer":' || CASE
            WHEN one.type IN ('array', 'object') THEN one.value
            WHEN one.type IN ('true', 'false', 'null') THEN one.type
            ELSE json_quote(one.value) END || '}',
        created_at, '{"disposition":"taken"}'
    FROM readable, json_each(request, '$.step_answers') one;

-- The budget of a retried run is that of the whole run already.
INSERT OR IGNORE INTO run_inputs (run_id, input_id, kind, sender, content, at, reply)
    SELECT run_id, coalesce(json_extract(one.value, '$.change_id'), lower(hex(randomblob(16)))),
        CASE json_extract(one.value, '$.action') WHEN 'retry' THEN 'retry' ELSE 'plan_change' END, 'user',
        CASE json_extract(one.value, '$.action') WHEN 'retry' THEN json_object(
            'after', CASE WHEN json_extract(request, '$.is_retry')
                THEN json_extract(request, '$.answered_after') ELSE 0 END,
            'budget', json_extract(request, '$.budget'))
        ELSE one.value END,
        created_at,
        CASE json_extract(one.value, '$.action') WHEN 'retry' THEN '{"disposition":"taken"}' END
    FROM readable, json_each(request, '$.wishes') one;

INSERT OR IGNORE INTO run_inputs (run_id, input_id, kind, sender, content, at, reply)
    SELECT run_id, lower(hex(randomblob(16))), 'resume', 'user',
        '{"interrupt_id":' || json_quote(coalesce(nullif(json_extract(request, '$.answered'), ''), one.key)) || ',"answer":' || CASE
            WHEN one.type IN ('array', 'object') THEN one.value
            WHEN one.type IN ('true', 'false', 'null') THEN one.type
            ELSE json_quote(one.value) END ||
            ',"after":' || coalesce(json_extract(request, '$.answered_after'), 0) || '}',
        created_at, '{"disposition":"taken"}'
    FROM readable, json_each(request, '$.answers') one;

UPDATE runs SET
    stalls = coalesce(json_extract(request, '$.stalls'), 0),
    retries = (SELECT count(*) FROM run_inputs WHERE run_inputs.run_id = runs.run_id AND kind = 'retry'),
    request = json_remove(request, '$.wishes', '$.user_messages', '$.step_answers', '$.answers',
        '$.answered', '$.answered_after', '$.is_retry', '$.stalls')
    WHERE json_valid(request);
DROP VIEW readable;
