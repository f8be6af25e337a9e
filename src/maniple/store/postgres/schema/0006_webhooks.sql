-- The tables of store/sqlite/schema/0018_webhooks.sql; what they mean is written there.
CREATE TABLE webhooks (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id text NOT NULL UNIQUE,
    owner text NOT NULL,
    url text NOT NULL,
    statuses text NOT NULL,
    salt text NOT NULL,
    created_at double precision NOT NULL,
    disabled text NOT NULL DEFAULT ''
);
CREATE INDEX webhooks_of_owner ON webhooks (owner, position);

CREATE TABLE webhook_deliveries (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    delivery_id text NOT NULL UNIQUE,
    webhook_id text NOT NULL REFERENCES webhooks (webhook_id) ON DELETE CASCADE,
    run_id text NOT NULL,
    thread_id text NOT NULL,
    status text NOT NULL,
    error_code text,
    at double precision NOT NULL,
    state text NOT NULL DEFAULT 'pending',
    attempts integer NOT NULL DEFAULT 0,
    next_at double precision NOT NULL,
    outcome text NOT NULL DEFAULT ''
);
CREATE INDEX webhook_deliveries_of_webhook ON webhook_deliveries (webhook_id, position);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at) WHERE state = 'pending';

CREATE FUNCTION report_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO webhook_deliveries (delivery_id, webhook_id, run_id, thread_id, status, error_code, at, next_at)
    SELECT 'msg_' || replace(gen_random_uuid()::text, '-', ''), webhook_id, NEW.run_id, NEW.thread_id, NEW.status,
        NEW.error_code, extract(epoch FROM clock_timestamp()), extract(epoch FROM clock_timestamp())
    FROM webhooks
    WHERE owner = NEW.owner AND disabled = '' AND strpos(statuses, ',' || NEW.status || ',') > 0
    ORDER BY position;
    RETURN NULL;
END $$;
CREATE TRIGGER report_run AFTER UPDATE OF status ON runs FOR EACH ROW
    WHEN (NEW.status <> OLD.status
        AND NEW.status IN ('completed', 'failed', 'cancelled', 'budget_exhausted', 'interrupted'))
    EXECUTE FUNCTION report_run();
