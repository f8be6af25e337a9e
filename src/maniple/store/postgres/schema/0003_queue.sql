-- What the queue of runs needs beside Procrastinate's tables (0002). A job says "drive this run" and nothing more: what
-- is true of a run stands in `runs`. `job` is the job for which a process drives the run, 0 where a process ends it
-- without one; `tag` is its place in the fair order, the lowest first.
ALTER TABLE runs ADD COLUMN job bigint, ADD COLUMN tag bigint NOT NULL DEFAULT 0;
CREATE INDEX runs_of_job ON runs (job) WHERE job IS NOT NULL;
CREATE INDEX runs_by_tag ON runs (owner, tag) WHERE status IN ('queued', 'running');
CREATE INDEX runs_in_order ON runs (thread_id, position) WHERE status IN ('queued', 'running', 'interrupted');
CREATE INDEX run_inputs_pending ON run_inputs (run_id) WHERE reply IS NULL;
CREATE INDEX procrastinate_jobs_todo_by_lock ON procrastinate_jobs (lock) WHERE status = 'todo';

-- Only a thread's oldest unfinished run has a job, so that what waits behind an interrupted run waits. Called in each
-- transaction that accepts, answers, retries or ends a run of the thread. The sweep knows that nobody drives the run.
CREATE FUNCTION defer_next(thread text, may_be_driven boolean) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    oldest runs%ROWTYPE;
BEGIN
    SELECT * INTO oldest FROM runs WHERE thread_id = thread AND status IN ('queued', 'running', 'interrupted')
        ORDER BY position LIMIT 1;
    IF NOT FOUND OR oldest.status = 'interrupted' OR oldest.kind <> 'server' THEN
        RETURN NULL;
    END IF;
    IF (may_be_driven AND oldest.job IS NOT NULL) OR EXISTS (SELECT FROM procrastinate_jobs
            WHERE lock = thread AND status = 'todo' AND args ->> 'run_id' = oldest.run_id) THEN
        RETURN NULL;
    END IF;
    -- That of a later run, which waits now: an answer and a retry go before it.
    DELETE FROM procrastinate_jobs WHERE lock = thread AND status = 'todo';
    RETURN (procrastinate_defer_jobs_v1(ARRAY[ROW('runs.1', 'maniple.drive', -least(oldest.tag, 2147483647)::integer,
        thread, NULL, jsonb_build_object('run_id', oldest.run_id), NULL)::procrastinate_job_to_defer_v1]))[1];
END $$;

-- Procrastinate ends a job by its id, whoever asks: a process that lost its run would free the thread under the one
-- that has it.
CREATE FUNCTION fence_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM runs WHERE job = OLD.id AND status IN ('queued', 'running')
            AND process <> current_setting('maniple.process', true)) THEN
        RAISE 'another process drives the run of job %', OLD.id USING ERRCODE = 'MP001';
    END IF;
    RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER fence_end BEFORE UPDATE OF status ON procrastinate_jobs FOR EACH ROW
    WHEN (OLD.status = 'doing' AND NEW.status NOT IN ('todo', 'doing')) EXECUTE FUNCTION fence_job();
CREATE TRIGGER fence_delete BEFORE DELETE ON procrastinate_jobs FOR EACH ROW
    WHEN (OLD.status = 'doing') EXECUTE FUNCTION fence_job();

-- Procrastinate rings for new jobs alone: not for one that is given back, nor when a lock comes free.
CREATE FUNCTION ring_freed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('procrastinate_queue_v1#' || OLD.queue_name,
        json_build_object('type', 'job_inserted', 'job_id', OLD.id)::text);
    RETURN NULL;
END $$;
CREATE TRIGGER ring_freed AFTER UPDATE OF status ON procrastinate_jobs FOR EACH ROW
    WHEN (OLD.status = 'doing' AND NEW.status <> 'doing') EXECUTE FUNCTION ring_freed();
CREATE TRIGGER ring_deleted AFTER DELETE ON procrastinate_jobs FOR EACH ROW
    WHEN (OLD.status = 'doing') EXECUTE FUNCTION ring_freed();

-- The bells of what is sent to a run and of its status, on the channel of its events. Like those they carry no data.
CREATE FUNCTION ring_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('maniple_events', NEW.run_id || ' ' || TG_ARGV[0]);
    RETURN NULL;
END $$;
CREATE TRIGGER ring_input AFTER INSERT ON run_inputs FOR EACH ROW
    WHEN (NEW.reply IS NULL) EXECUTE FUNCTION ring_run('input');
CREATE TRIGGER ring_reply AFTER UPDATE OF reply ON run_inputs FOR EACH ROW
    WHEN (NEW.kind = 'command') EXECUTE FUNCTION ring_run('reply');
CREATE TRIGGER ring_status AFTER UPDATE OF status ON runs FOR EACH ROW
    WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION ring_run('status');
