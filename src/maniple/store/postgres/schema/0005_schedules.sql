-- The tables of store/sqlite/schema/0017_schedules.sql; what they mean is written there.
CREATE TABLE schedules (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule_id text NOT NULL UNIQUE,
    owner text NOT NULL,
    name text NOT NULL,
    cron text NOT NULL,
    zone text NOT NULL,
    overlap text NOT NULL,
    catch_up integer NOT NULL,
    thread_id text,
    request text NOT NULL,
    created_at double precision NOT NULL,
    next_at double precision,
    paused_at double precision
);
CREATE INDEX schedules_of_owner ON schedules (owner, position);
CREATE INDEX schedules_due ON schedules (next_at) WHERE paused_at IS NULL AND next_at IS NOT NULL;

CREATE TABLE schedule_ticks (
    schedule_id text NOT NULL REFERENCES schedules (schedule_id) ON DELETE CASCADE,
    tick double precision NOT NULL,
    run_id text NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (schedule_id, tick)
);
CREATE INDEX schedule_ticks_pending ON schedule_ticks (tick) WHERE state = 'pending';
