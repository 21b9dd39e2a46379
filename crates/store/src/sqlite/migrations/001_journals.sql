-- Facts about the file as a whole.
CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;

-- fence: raised by each owner. reopened: raised after a failed commit, to prove that the disk
-- can be written.
INSERT INTO meta (name, value) VALUES ('fence', 0), ('reopened', 0);

-- One row per run. It changes only when status, wake-up or closing change.
CREATE TABLE executions (
  run_no        INTEGER PRIMARY KEY,
  namespace     TEXT NOT NULL,
  id            TEXT NOT NULL,
  run_id        BLOB NOT NULL,
  workflow      TEXT NOT NULL,
  version       TEXT NOT NULL,
  input_digest  BLOB NOT NULL,
  after_run     INTEGER,
  created_at_us INTEGER NOT NULL,
  status        INTEGER NOT NULL,
  wake_at_us    INTEGER,
  closed_at_us  INTEGER
);

-- The newest run of an id.
CREATE INDEX executions_by_id ON executions (namespace, id, run_no);

-- Recovery reads the open runs, however many are closed.
CREATE INDEX executions_open ON executions (run_no) WHERE closed_at_us IS NULL;

-- place = run_no * 2^28 + seq, so that the rows of a run stand together in a table that is
-- addressed by integers: cheaper to append to than a key of two columns, and large rows do not
-- spill into pages of their own as early.
CREATE TABLE journal (
  place INTEGER PRIMARY KEY,
  row   BLOB NOT NULL
);

-- place = run_no * 2^28 + number.
CREATE TABLE inbox (
  place          INTEGER PRIMARY KEY,
  run_no         INTEGER NOT NULL,
  request_id     TEXT NOT NULL,
  kind           INTEGER NOT NULL,
  payload        BLOB NOT NULL,
  digest         BLOB NOT NULL,
  accepted_at_us INTEGER NOT NULL
);

-- A repeated request finds its first answer.
CREATE UNIQUE INDEX inbox_by_request ON inbox (run_no, request_id);

-- Open attention items; an index, rebuilt from journals.
CREATE TABLE attention (
  run_no       INTEGER NOT NULL,
  seq          INTEGER NOT NULL,
  ord          INTEGER NOT NULL,
  kind         TEXT NOT NULL,
  message      TEXT NOT NULL,
  opened_at_us INTEGER NOT NULL,
  PRIMARY KEY (run_no, seq, ord)
) WITHOUT ROWID;
