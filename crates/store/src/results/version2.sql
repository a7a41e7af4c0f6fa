ALTER TABLE replays ADD COLUMN session TEXT;   -- the check that ran the program as well, if it belongs to one
ALTER TABLE replays ADD COLUMN quantiles TEXT; -- seconds of the repetitions: the least, each twentieth, the most
