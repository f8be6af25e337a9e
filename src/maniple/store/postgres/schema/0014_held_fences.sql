-- The fence looks once in a transaction at the run whose rows are written, and not at each row: the lock that it takes
-- holds until the transaction ends, and so does `maniple.held`, the run that was looked at last.
CREATE OR REPLACE FUNCTION fence_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('maniple.held', true) = NEW.run_id THEN
        RETURN NEW;
    END IF;
    PERFORM FROM runs WHERE run_id = NEW.run_id AND process = current_setting('maniple.process', true) FOR SHARE;
    IF FOUND THEN
        PERFORM set_config('maniple.held', NEW.run_id, true);
        RETURN NEW;
    END IF;
    -- The row of a run that was deleted is for its foreign key to refuse.
    IF EXISTS (SELECT FROM runs WHERE run_id = NEW.run_id) THEN
        PERFORM nextval('fenced_writes');
        RAISE 'another process drives run %', NEW.run_id USING ERRCODE = 'MP001';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION fence_checkpoint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.run_id IS NOT NULL THEN
        IF current_setting('maniple.held', true) = NEW.run_id THEN
            RETURN NEW;
        END IF;
        PERFORM FROM runs WHERE run_id = NEW.run_id AND process = current_setting('maniple.process', true) FOR SHARE;
        IF FOUND THEN
            PERFORM set_config('maniple.held', NEW.run_id, true);
            RETURN NEW;
        END IF;
        IF NOT EXISTS (SELECT FROM runs WHERE run_id = NEW.run_id) THEN
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
