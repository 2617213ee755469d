/* limit_test.c: tensors that a small control group cannot hold together are refused, where the
 * system would grant them and kill the process later. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/test.h"
#include "base/world.h"
#include "tutti/tensor.h"

enum { LIMIT = 256 << 20, EACH = 32 << 20 };

static tutti_status read_small(void *self, const char *path, size_t limit, void **ret_data,
                               size_t *ret_size)
{
    (void)self, (void)limit;
    const char *text = strcmp(path, "/proc/self/cgroup") == 0                 ? "0::/small\n"
                       : strcmp(path, "/sys/fs/cgroup/small/memory.max") == 0 ? "268435456\n"
                                                                              : NULL;
    if (!text)
        return tutti_fail(TUTTI_NOT_FOUND, "no %s", path);
    *ret_data = strdup(text);
    *ret_size = strlen(text);
    return TUTTI_OK;
}

/* The test's process has not asked for the limit before. */
TUTTI_TEST(tensors_beyond_a_small_group_are_refused_together)
{
    tutti_world world = *tutti__world();
    world.read_file = read_small;
    tutti__world_replace(&world);
    bool swaps = tutti__memory_limit() != LIMIT; /* the machine's swap, or asked before */
    tutti__world_replace(NULL);
    if (swaps)
        SKIP("the machine swaps");
    tutti_tensor *tensors[LIMIT / EACH + 1];
    int count = 0;
    tutti_status status = TUTTI_OK;
    for (; status == TUTTI_OK && count < LIMIT / EACH + 1; count++)
        status = tutti_tensor_create(TUTTI_U8, 1, (int64_t[]){EACH}, &tensors[count]);
    CHECK_STATUS(status, TUTTI_NO_MEMORY);
    CHECK_CONTAINS(tutti_error_message(), "of the 268435456 that the machine or the control group");
    for (int i = 0; i < count - 1; i++)
        tutti_tensor_release(tensors[i]);
    CHECK(count - 1 >= LIMIT / EACH - 1);
    /* What was given back lately is not kept in the way of another size. */
    CHECK_OK(tutti_tensor_create(TUTTI_U8, 1, (int64_t[]){LIMIT - EACH}, &tensors[0]));
    tutti_tensor_release(tensors[0]);
}
