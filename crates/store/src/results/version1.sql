CREATE TABLE replays (
  id INTEGER PRIMARY KEY,
  at TEXT NOT NULL,               -- UTC, as 2026-11-21T10:03:04Z
  codelet TEXT NOT NULL,
  region TEXT NOT NULL,
  unit TEXT NOT NULL,
  region_index INTEGER NOT NULL,
  invocation INTEGER NOT NULL,
  sha256 TEXT NOT NULL,           -- of the package file
  flags TEXT NOT NULL,            -- after those of the build, as a shell would split them
  passes TEXT,
  warmup TEXT NOT NULL,
  cpu TEXT NOT NULL,
  kernel TEXT NOT NULL,
  machine TEXT NOT NULL,
  tool TEXT NOT NULL,
  cycles_min INTEGER,             -- these and the following: null if the replay failed
  cycles_median INTEGER,
  seconds_min REAL,
  seconds_median REAL,
  seconds_low REAL,               -- confidence interval of the median, if known
  seconds_high REAL,
  samples INTEGER,
  faults INTEGER,                 -- repetitions set aside
  switches INTEGER,
  migrations INTEGER,
  stolen INTEGER,
  disturbed INTEGER,
  batch INTEGER,
  in_vivo_seconds REAL,
  verdict TEXT NOT NULL,
  reason TEXT NOT NULL,
  same_code INTEGER               -- null if unknown
);
CREATE INDEX replays_by_setting ON replays (sha256, machine, warmup);
