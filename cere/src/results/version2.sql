ALTER TABLE replays ADD COLUMN session TEXT;          -- the check that ran the program as well, if it belongs to one
ALTER TABLE replays ADD COLUMN seconds_quartile REAL; -- what a quarter of the repetitions stay below
