ALTER TABLE replays ADD COLUMN threads INTEGER; -- of a team; null: the program has no OpenMP runtime
