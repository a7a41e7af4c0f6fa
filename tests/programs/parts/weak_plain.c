unsigned long plain_elsewhere(unsigned long x) { return x * 5 + 1; }
