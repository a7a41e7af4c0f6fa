#include "templates.h"

static Registry registry("other", 4);

long other_sum(int n) {
    std::vector<long> values;
    for (int i = 0; i < n; i++)
        values.push_back(hash_of(i + registry.size()));
    return Counter<long>::run(values);
}
