ALTER TABLE replays ADD COLUMN joules REAL; -- of an invocation, the median; null: energy was not measured
ALTER TABLE replays ADD COLUMN joules_low REAL; -- confidence interval of the median, if known
ALTER TABLE replays ADD COLUMN joules_high REAL;
ALTER TABLE replays ADD COLUMN joules_seconds REAL; -- of an invocation while its energy was measured
