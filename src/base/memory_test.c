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

/* The limit is looked for when much is held, in files that take memory themselves. */
TUTTI_TEST(memory_is_granted_to_a_program_that_asks_for_its_limit_late)
{
    int64_t much = 100 << 20;
    tutti_fail(TUTTI_INVALID, "a message of before");
    tutti__memory_count(much);
    void *small = tutti__aligned_alloc(64, 4096);
    tutti__memory_count(-much);
    CHECK(small != NULL || tutti__memory_limit() < much);
    CHECK_CONTAINS(tutti_error_message(), "a message of before");
    free(small);
}
