-- A line of `events.body` may name the turn that the event belongs to: `at @turn type json`. The events of
-- concurrent turns interleave. The version keeps a program that would take the turn for the type away from the
-- file. `history` is the digest of the conversation that the newest run of a thread has returned to its client:
-- a client that sends the conversation back without a thread's id continues that thread.
ALTER TABLE threads ADD COLUMN history TEXT NOT NULL DEFAULT '';
CREATE INDEX threads_of_history ON threads (owner, history) WHERE history <> '';
