-- Who published a source, who wrote it and when, as the page itself says; '' where it does not.
ALTER TABLE sources ADD COLUMN published TEXT NOT NULL DEFAULT '';
ALTER TABLE sources ADD COLUMN author TEXT NOT NULL DEFAULT '';
ALTER TABLE sources ADD COLUMN publisher TEXT NOT NULL DEFAULT '';
