-- The tables of store/sqlite/schema in their newest form; what they mean is written there. `position` is the order of
-- arrival: clocks may jump, this does not. Texts whose order matters are compared byte by byte (COLLATE "C").
CREATE TABLE threads (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread_id text NOT NULL UNIQUE,
    owner text NOT NULL,
    title text NOT NULL,
    created_at double precision NOT NULL UNIQUE,
    updated_at double precision NOT NULL,
    history text COLLATE "C" NOT NULL DEFAULT '',
    cut_history text COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX threads_of_owner ON threads (owner, position);
CREATE INDEX threads_of_history ON threads (owner, history) WHERE history <> '';
CREATE INDEX threads_of_cut_history ON threads (owner, cut_history) WHERE cut_history <> '';

CREATE TABLE runs (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL UNIQUE,
    thread_id text NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
    owner text NOT NULL,
    kind text NOT NULL,
    process text NOT NULL,
    status text NOT NULL,
    request text NOT NULL,
    created_at double precision NOT NULL UNIQUE,
    started_at double precision,
    ended_at double precision,
    model_calls bigint NOT NULL,
    tool_calls bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    seconds double precision NOT NULL,
    cost double precision NOT NULL,
    error_code text,
    error text,
    recoveries integer NOT NULL,
    base_checkpoint text,
    stalls integer NOT NULL DEFAULT 0,
    retries integer NOT NULL DEFAULT 0,
    waiting_for text,
    waiting_since double precision,
    waiting_until double precision
);
CREATE INDEX runs_of_thread ON runs (thread_id, position);
CREATE INDEX runs_of_owner ON runs (owner, position);
CREATE INDEX runs_of_owner_since ON runs (owner, created_at);
CREATE INDEX runs_of_owner_until ON runs (owner, ended_at);
CREATE INDEX runs_unfinished ON runs (kind, position) WHERE status IN ('queued', 'running');
CREATE INDEX runs_interrupted ON runs (owner, thread_id) WHERE status = 'interrupted';

CREATE TABLE run_inputs (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    input_id text NOT NULL,
    kind text NOT NULL,
    sender text NOT NULL,
    content text NOT NULL,
    at double precision NOT NULL,
    reply text,
    UNIQUE (run_id, input_id)
);

CREATE TABLE events (
    run_id text NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    first bigint NOT NULL,
    last bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (run_id, last)
);

CREATE TABLE tool_calls (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    tool_call_id text NOT NULL,
    tool_name text NOT NULL,
    arguments text NOT NULL,
    result text,
    begun_at double precision NOT NULL,
    ended_at double precision,
    attempts integer NOT NULL,
    started_at double precision,
    UNIQUE (run_id, tool_call_id)
);

CREATE TABLE artifacts (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    artifact_id text NOT NULL UNIQUE,
    run_id text NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    thread_id text NOT NULL,
    owner text NOT NULL,
    name text NOT NULL,
    media_type text NOT NULL,
    size bigint NOT NULL,
    sha256 text NOT NULL,
    created_at double precision NOT NULL
);
CREATE INDEX artifacts_of_run ON artifacts (run_id);
CREATE INDEX artifacts_of_thread ON artifacts (thread_id);

CREATE TABLE api_keys (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key_id text NOT NULL UNIQUE,
    name text NOT NULL,
    digest text NOT NULL UNIQUE,
    created_at double precision NOT NULL,
    revoked_at double precision,
    limits text NOT NULL
);

CREATE TABLE spent (
    owner text NOT NULL,
    created_at double precision NOT NULL,
    ended_at double precision,
    model_calls bigint NOT NULL,
    tool_calls bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    seconds double precision NOT NULL,
    cost double precision NOT NULL
);
CREATE INDEX spent_of_owner ON spent (owner);

CREATE TABLE sources (
    run_id text NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    number integer NOT NULL,
    comparable text NOT NULL,
    url text NOT NULL,
    title text NOT NULL,
    kind text NOT NULL,
    retrieved_at double precision NOT NULL,
    sha256 text NOT NULL,
    inherited boolean NOT NULL DEFAULT false,
    published text NOT NULL DEFAULT '',
    author text NOT NULL DEFAULT '',
    publisher text NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, number)
);
-- Addresses may be longer than an index takes: their digests are compared.
CREATE UNIQUE INDEX sources_comparable ON sources (run_id, md5(comparable));

CREATE TABLE source_texts (
    run_id text NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    sha256 text NOT NULL,
    characters bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (run_id, sha256)
);

CREATE TABLE source_aliases (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL,
    number integer NOT NULL,
    comparable text NOT NULL,
    url text NOT NULL,
    redirects boolean NOT NULL,
    FOREIGN KEY (run_id, number) REFERENCES sources (run_id, number) ON DELETE CASCADE
);
CREATE UNIQUE INDEX source_aliases_comparable ON source_aliases (run_id, md5(comparable));

CREATE TABLE readings (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL,
    number integer NOT NULL,
    text_run_id text NOT NULL,
    sha256 text NOT NULL,
    UNIQUE (run_id, number, sha256),
    FOREIGN KEY (run_id, number) REFERENCES sources (run_id, number) ON DELETE CASCADE,
    FOREIGN KEY (text_run_id, sha256) REFERENCES source_texts (run_id, sha256) ON DELETE CASCADE
);
CREATE INDEX readings_by_text ON readings (text_run_id, sha256);

CREATE TABLE unread_pages (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    comparable text NOT NULL,
    url text NOT NULL,
    reason text NOT NULL,
    tried_at double precision NOT NULL
);
CREATE UNIQUE INDEX unread_pages_comparable ON unread_pages (run_id, md5(comparable));

CREATE TABLE findings (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL,
    number integer NOT NULL,
    statement text NOT NULL,
    quote text NOT NULL,
    sha256 text NOT NULL,
    span_start bigint NOT NULL,
    span_end bigint NOT NULL,
    noted_at double precision NOT NULL,
    inherited boolean NOT NULL DEFAULT false,
    FOREIGN KEY (run_id, number) REFERENCES sources (run_id, number) ON DELETE CASCADE
);
CREATE UNIQUE INDEX findings_statement ON findings (run_id, number, md5(statement));

CREATE TABLE page_attempts (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    step integer NOT NULL,
    comparable text NOT NULL,
    url text NOT NULL
);
CREATE UNIQUE INDEX page_attempts_comparable ON page_attempts (run_id, step, md5(comparable));

-- LangGraph's tables, as langgraph-checkpoint-postgres 3.2 has them, with two columns of ours: `position`, because ids
-- of checkpoints begin with the time of whoever writes, and `run_id`, the run for which a row was written.
CREATE TABLE checkpoints (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL DEFAULT '',
    checkpoint_id text NOT NULL,
    parent_checkpoint_id text,
    type text,
    checkpoint jsonb NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    position bigint GENERATED ALWAYS AS IDENTITY,
    run_id text,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);
CREATE INDEX checkpoints_newest ON checkpoints (thread_id, checkpoint_ns, position DESC);

CREATE TABLE checkpoint_blobs (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL DEFAULT '',
    channel text NOT NULL,
    version text NOT NULL,
    type text NOT NULL,
    blob bytea,
    run_id text,
    PRIMARY KEY (thread_id, checkpoint_ns, channel, version)
);

CREATE TABLE checkpoint_writes (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL DEFAULT '',
    checkpoint_id text NOT NULL,
    task_id text NOT NULL,
    idx integer NOT NULL,
    channel text NOT NULL,
    type text,
    blob bytea NOT NULL,
    task_path text NOT NULL DEFAULT '',
    run_id text,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);

-- The processes that have the database open. Who has not beaten for the time of a lease is dead.
CREATE TABLE processes (
    process text PRIMARY KEY,
    is_server boolean NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    beat_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A transaction that is not repeatable leaves its token here: if the answer to its COMMIT was lost, trying it again
-- finds the token, and nothing is done twice.
CREATE TABLE write_receipts (
    token uuid PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX write_receipts_by_age ON write_receipts (at);

-- The fence: nobody writes for a run but the process that drives it, whose id each connection has in the variable
-- `maniple.process`. FOR SHARE: a claim waits for what is being written, and nothing follows it.
CREATE FUNCTION fence_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM runs WHERE run_id = NEW.run_id AND process = current_setting('maniple.process', true) FOR SHARE;
    -- The row of a run that was deleted is for its foreign key to refuse.
    IF NOT FOUND AND EXISTS (SELECT FROM runs WHERE run_id = NEW.run_id) THEN
        RAISE 'another process drives run %', NEW.run_id USING ERRCODE = 'MP001';
    END IF;
    RETURN NEW;
END $$;

-- A checkpoint that names no run is refused while another process works on its thread.
CREATE FUNCTION fence_checkpoint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.run_id IS NOT NULL THEN
        PERFORM FROM runs WHERE run_id = NEW.run_id AND process = current_setting('maniple.process', true) FOR SHARE;
        IF FOUND OR NOT EXISTS (SELECT FROM runs WHERE run_id = NEW.run_id) THEN
            RETURN NEW;
        END IF;
        RAISE 'another process drives run %', NEW.run_id USING ERRCODE = 'MP001';
    END IF;
    PERFORM FROM runs WHERE thread_id = NEW.thread_id AND status = 'running'
        AND process IS DISTINCT FROM current_setting('maniple.process', true) FOR SHARE;
    IF FOUND THEN
        RAISE 'another process drives a run of thread %', NEW.thread_id USING ERRCODE = 'MP001';
    END IF;
    RETURN NEW;
END $$;

DO $$
DECLARE fenced text;
BEGIN
    FOREACH fenced IN ARRAY ARRAY['events', 'tool_calls', 'artifacts', 'sources', 'source_texts', 'source_aliases',
        'readings', 'unread_pages', 'findings', 'page_attempts'] LOOP
        EXECUTE format('CREATE TRIGGER fence BEFORE INSERT OR UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION fence_run()',
            fenced);
    END LOOP;
    FOREACH fenced IN ARRAY ARRAY['checkpoints', 'checkpoint_blobs', 'checkpoint_writes'] LOOP
        EXECUTE format('CREATE TRIGGER fence BEFORE INSERT OR UPDATE ON %I FOR EACH ROW '
            'EXECUTE FUNCTION fence_checkpoint()', fenced);
    END LOOP;
END $$;

-- The bell carries a run and the number of its newest event, and no data: one that is lost costs a look.
CREATE FUNCTION ring_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('maniple_events', run_id || ' ' || max(last)) FROM added GROUP BY run_id;
    RETURN NULL;
END $$;
CREATE TRIGGER ring AFTER INSERT ON events REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION ring_events();
