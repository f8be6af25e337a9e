-- What a queued run waits for ("model" or "store"), since when, and until when it waits at most (Unix seconds).
ALTER TABLE runs ADD COLUMN waiting_for TEXT;
ALTER TABLE runs ADD COLUMN waiting_since REAL;
ALTER TABLE runs ADD COLUMN waiting_until REAL;
