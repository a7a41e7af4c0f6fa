ALTER TABLE replays ADD COLUMN threads INTEGER; -- of a team; null: the program has no OpenMP runtime
ALTER TABLE replays ADD COLUMN placement TEXT; -- what else its OpenMP runtime was told; null or empty: nothing
