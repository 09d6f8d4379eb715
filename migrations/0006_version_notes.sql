-- What a version's author should know of it, found when it was deployed: a JSON list of codes and messages.
ALTER TABLE versions ADD COLUMN notes TEXT NOT NULL DEFAULT '[]';
