-- Small texts that all nodes share: logins at MCP servers (encrypted), accepted tools of MCP servers, and what
-- calls have shown of model endpoints. Each write gives a row another revision.
CREATE TABLE shared_texts (
    kind text NOT NULL,
    name text NOT NULL,
    content text NOT NULL,
    revision bigserial NOT NULL,
    PRIMARY KEY (kind, name)
);
