-- What deleted runs had used, for two days: to delete a conversation gives nothing of a key's day back.
CREATE TABLE spent (
    owner TEXT NOT NULL,
    created_at REAL NOT NULL,
    ended_at REAL,
    model_calls INTEGER NOT NULL,
    tool_calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    seconds REAL NOT NULL,
    cost REAL NOT NULL
) STRICT;
CREATE INDEX spent_of_owner ON spent (owner);

CREATE INDEX runs_of_owner_until ON runs (owner, ended_at);
