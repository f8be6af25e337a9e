-- The digest of the conversation with which a stream was closed while its run goes on. The run's end stores
-- another one in `history`, which this client was never sent.
ALTER TABLE threads ADD COLUMN cut_history TEXT NOT NULL DEFAULT '';
CREATE INDEX threads_of_cut_history ON threads (owner, cut_history) WHERE cut_history <> '';
