ALTER TABLE replays ADD COLUMN operands TEXT; -- with states of their own, as a=cold,b=l2; null or empty: none
