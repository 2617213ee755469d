#include "base/memory.h"

#include <stdlib.h>

#include "base/test.h"

TUTTI_TEST(memory_beyond_the_machine_is_refused)
{
    int64_t limit = tutti__memory_limit();
    CHECK(limit > 64 << 20);
    CHECK(tutti__aligned_alloc(64, ((size_t)limit / 64 + 1) * 64) == NULL || limit < 1 << 30);
    void *small = tutti__aligned_alloc(64, 4096);
    CHECK(small != NULL);
    free(small);
}
