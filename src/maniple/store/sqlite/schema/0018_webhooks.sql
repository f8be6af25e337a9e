-- Addresses that are told of the ends and the waits of an owner's runs. `statuses` is a list with a comma before and
-- after each status. The secret of a webhook is derived from its id and `salt`, and is not stored.
CREATE TABLE webhooks (
    position INTEGER PRIMARY KEY,
    webhook_id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    url TEXT NOT NULL,
    statuses TEXT NOT NULL,
    salt TEXT NOT NULL,
    created_at REAL NOT NULL,
    disabled TEXT NOT NULL DEFAULT ''
);
CREATE INDEX webhooks_of_owner ON webhooks (owner, position);

-- What is to be sent: stored by a trigger in the transaction that changes the run, so that no crash loses it. Without a
-- reference to the run, which may be deleted meanwhile.
CREATE TABLE webhook_deliveries (
    position INTEGER PRIMARY KEY,
    delivery_id TEXT NOT NULL UNIQUE,
    webhook_id TEXT NOT NULL REFERENCES webhooks (webhook_id) ON DELETE CASCADE,
    run_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    status TEXT NOT NULL,
    error_code TEXT,
    at REAL NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending',
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at REAL NOT NULL,
    outcome TEXT NOT NULL DEFAULT ''
);
CREATE INDEX webhook_deliveries_of_webhook ON webhook_deliveries (webhook_id, position);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at) WHERE state = 'pending';

CREATE TRIGGER report_run AFTER UPDATE OF status ON runs
WHEN NEW.status <> OLD.status
    AND NEW.status IN ('completed', 'failed', 'cancelled', 'budget_exhausted', 'interrupted')
BEGIN
    INSERT INTO webhook_deliveries (delivery_id, webhook_id, run_id, thread_id, status, error_code, at, next_at)
    SELECT 'msg_' || lower(hex(randomblob(16))), webhook_id, NEW.run_id, NEW.thread_id, NEW.status, NEW.error_code,
        (julianday('now') - 2440587.5) * 86400.0, (julianday('now') - 2440587.5) * 86400.0
    FROM webhooks
    WHERE owner = NEW.owner AND disabled = '' AND instr(statuses, ',' || NEW.status || ',') > 0
    ORDER BY position;
END;
