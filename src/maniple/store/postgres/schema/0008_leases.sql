-- Each process says for itself how long others wait for its beat: a change of `runs.lease_seconds` needs no stop of all.
ALTER TABLE processes ADD COLUMN lease_seconds double precision NOT NULL DEFAULT 5;
-- A run that its process has given back has not been taken from a dead one.
ALTER TABLE runs ADD COLUMN is_given_back boolean NOT NULL DEFAULT false;

-- Counters for the metrics. Sequences, because a transaction that is refused counts as well.
CREATE SEQUENCE take_overs;
CREATE SEQUENCE fenced_writes;

CREATE OR REPLACE FUNCTION fence_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM runs WHERE run_id = NEW.run_id AND process = current_setting('maniple.process', true) FOR SHARE;
    -- The row of a run that was deleted is for its foreign key to refuse.
    IF NOT FOUND AND EXISTS (SELECT FROM runs WHERE run_id = NEW.run_id) THEN
        PERFORM nextval('fenced_writes');
        RAISE 'another process drives run %', NEW.run_id USING ERRCODE = 'MP001';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION fence_checkpoint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.run_id IS NOT NULL THEN
        PERFORM FROM runs WHERE run_id = NEW.run_id AND process = current_setting('maniple.process', true) FOR SHARE;
        IF FOUND OR NOT EXISTS (SELECT FROM runs WHERE run_id = NEW.run_id) THEN
            RETURN NEW;
        END IF;
        PERFORM nextval('fenced_writes');
        RAISE 'another process drives run %', NEW.run_id USING ERRCODE = 'MP001';
    END IF;
    PERFORM FROM runs WHERE thread_id = NEW.thread_id AND status = 'running'
        AND process IS DISTINCT FROM current_setting('maniple.process', true) FOR SHARE;
    IF FOUND THEN
        PERFORM nextval('fenced_writes');
        RAISE 'another process drives a run of thread %', NEW.thread_id USING ERRCODE = 'MP001';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION fence_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM runs WHERE job = OLD.id AND status IN ('queued', 'running')
            AND process <> current_setting('maniple.process', true)) THEN
        PERFORM nextval('fenced_writes');
        RAISE 'another process drives the run of job %', OLD.id USING ERRCODE = 'MP001';
    END IF;
    RETURN coalesce(NEW, OLD);
END $$;
