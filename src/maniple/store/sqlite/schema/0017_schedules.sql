-- When runs are to be started. `cron` is empty for a schedule that has one time only; `next_at` (Unix seconds) is NULL
-- after its last tick. `request` is the JSON from which each of its runs starts.
CREATE TABLE schedules (
    position INTEGER PRIMARY KEY,
    schedule_id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    cron TEXT NOT NULL,
    zone TEXT NOT NULL,
    overlap TEXT NOT NULL,
    catch_up INTEGER NOT NULL,
    thread_id TEXT,
    request TEXT NOT NULL,
    created_at REAL NOT NULL,
    next_at REAL,
    paused_at REAL
);
CREATE INDEX schedules_of_owner ON schedules (owner, position);
CREATE INDEX schedules_due ON schedules (next_at) WHERE paused_at IS NULL AND next_at IS NOT NULL;

-- What became of each tick: the primary key is why no two processes start one twice. `run_id` is known before the run
-- is started, so that a tick that a crash left `pending` is started once.
CREATE TABLE schedule_ticks (
    schedule_id TEXT NOT NULL REFERENCES schedules (schedule_id) ON DELETE CASCADE,
    tick REAL NOT NULL,
    run_id TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (schedule_id, tick)
) WITHOUT ROWID;
CREATE INDEX schedule_ticks_pending ON schedule_ticks (tick) WHERE state = 'pending';
