-- topic: the type of an event, empty for a verb. changed: what the sender of the row was told.
ALTER TABLE inbox ADD COLUMN topic TEXT NOT NULL DEFAULT '';
ALTER TABLE inbox ADD COLUMN changed INTEGER NOT NULL DEFAULT 1;

-- When a closed run may be deleted; never, if absent.
ALTER TABLE executions ADD COLUMN expires_at_us INTEGER;

-- What expires next is found however many runs are kept.
CREATE INDEX executions_expiring ON executions (expires_at_us) WHERE expires_at_us IS NOT NULL;

-- Runs that their owner has to look at, and how often they were called.
CREATE TABLE calls (
  run_no INTEGER PRIMARY KEY,
  times  INTEGER NOT NULL
);

-- Search attributes. kind: 0 text, 1 integer, 2 real, 3 flag, 4 instant. value: NULL if it is not a
-- number, which nothing is equal to.
CREATE TABLE attributes (
  run_no INTEGER NOT NULL,
  name   TEXT NOT NULL,
  kind   INTEGER NOT NULL,
  value,
  PRIMARY KEY (run_no, name)
) WITHOUT ROWID;

-- The newest runs with a value.
CREATE INDEX attributes_by_value ON attributes (name, kind, value, run_no);

-- Runs that were deleted and still have rows in journal or inbox.
CREATE TABLE doomed (
  run_no INTEGER PRIMARY KEY
);

-- run_last: the largest number of a run that was deleted, so that it is not given out again.
INSERT INTO meta (name, value) VALUES ('run_last', 0);
