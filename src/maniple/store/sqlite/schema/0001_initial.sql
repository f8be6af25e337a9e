-- `position` is the order of arrival: clocks may jump, this does not. `created_at` is unique, so that it can
-- name the place where a page of a list ended.
CREATE TABLE threads (
    position INTEGER PRIMARY KEY,
    thread_id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    title TEXT NOT NULL,
    created_at REAL NOT NULL UNIQUE,
    updated_at REAL NOT NULL
) STRICT;
CREATE INDEX threads_of_owner ON threads (owner, position);

CREATE TABLE runs (
    position INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    kind TEXT NOT NULL,
    process TEXT NOT NULL,
    status TEXT NOT NULL,
    request TEXT NOT NULL,
    created_at REAL NOT NULL UNIQUE,
    started_at REAL,
    ended_at REAL,
    model_calls INTEGER NOT NULL,
    tool_calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    seconds REAL NOT NULL,
    cost REAL NOT NULL,
    error_code TEXT,
    error TEXT,
    recoveries INTEGER NOT NULL,
    base_checkpoint TEXT
) STRICT;
CREATE INDEX runs_of_thread ON runs (thread_id, position);
CREATE INDEX runs_of_owner ON runs (owner, position);
CREATE INDEX runs_of_owner_since ON runs (owner, created_at);
CREATE INDEX runs_unfinished ON runs (kind, position) WHERE status IN ('queued', 'running');

-- One row for each group of events written together: `body` holds a line `type json` for each.
CREATE TABLE events (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run_id, last)
) STRICT;

CREATE TABLE tool_calls (
    position INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    tool_call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    arguments TEXT NOT NULL,
    result TEXT,
    begun_at REAL NOT NULL,
    ended_at REAL,
    attempts INTEGER NOT NULL,
    UNIQUE (run_id, tool_call_id)
) STRICT;

CREATE TABLE artifacts (
    position INTEGER PRIMARY KEY,
    artifact_id TEXT NOT NULL UNIQUE,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    thread_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX artifacts_of_run ON artifacts (run_id);

CREATE TABLE api_keys (
    position INTEGER PRIMARY KEY,
    key_id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    created_at REAL NOT NULL,
    revoked_at REAL,
    limits TEXT NOT NULL
) STRICT;
