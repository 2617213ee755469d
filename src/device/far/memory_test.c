/* memory_test.c: host code cannot touch far memory; copies in and out are checked. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "device/far/memory.h"
#include "tensor/tensor.h"

/* Whether reading, or writing, a byte ends a process. */
static bool is_closed(volatile char *at, bool write)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGSEGV, SIG_DFL);
        if (write)
            *at = 1;
        _exit(*at != 0 ? 0 : 2);
    }
    int status;
    CHECK_INT(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

TUTTI_TEST(far_memory_is_out_of_reach)
{
    tutti_far_memory *memory;
    tutti_tensor *tensor, *host;
    tutti_type type = tutti_type_make(TUTTI_F32, 2, (int64_t[]){3, 5000});
    CHECK_OK(tutti__far_memory_create("far:0", NULL, &memory));
    CHECK_OK(tutti__tensor_in(&memory->memory, &type, &tensor));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, type.dims, &host));
    for (int i = 0; i < 15000; i++)
        tutti_tensor_set(host, i, i);
    CHECK_OK(
        memory->memory.copy_in(memory, tutti_tensor_data(tensor), tutti_tensor_data(host), 60000));
    memset(tutti_tensor_data(host), 0, 60000);
    CHECK_OK(memory->memory.copy_out(memory, tutti_tensor_data(host),
                                     (char *)tutti_tensor_data(tensor) + 4, 40));
    CHECK_NEAR(tutti_tensor_get(host, 9), 10, 0);
    CHECK(is_closed(tutti_tensor_data(tensor), false));
    CHECK(is_closed((char *)tutti_tensor_data(tensor) + 59999, true));
    tutti_tensor_release(tensor);
    CHECK(memory->regions == NULL);
    tutti_tensor_release(host);
    tutti__far_memory_destroy(memory);
}

TUTTI_TEST(far_memory_refuses_addresses_of_others)
{
    tutti_far_memory *memory;
    tutti_far_region *region;
    char bytes[64] = {0};
    CHECK_OK(tutti__far_memory_create("far:0", NULL, &memory));
    CHECK_OK(tutti__far_region_create(memory, 100, 0, &region));
    CHECK_STATUS(memory->memory.copy_out(memory, bytes, bytes, 1), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "far:0");
    CHECK_STATUS(memory->memory.copy_in(memory, region->device + region->size - 10, bytes, 11),
                 TUTTI_INVALID);
    CHECK_STATUS(memory->memory.copy_in(memory, region->device + 1, bytes, SIZE_MAX),
                 TUTTI_INVALID);
    CHECK_OK(memory->memory.copy_in(memory, region->device + region->size - 10, bytes, 10));
    const tutti_far_region *found;
    size_t offset;
    CHECK_OK(tutti__far_find(memory, region->device + region->size - 1, 0, &found, &offset));
    CHECK(found == region && offset == region->size - 1);
    CHECK_STATUS(tutti__far_find(memory, region->device + region->size, 0, &found, &offset),
                 TUTTI_INVALID);
    CHECK_STATUS(tutti__far_region_create(memory, SIZE_MAX, 0, &region), TUTTI_TOO_LARGE);
    CHECK_STATUS(tutti__far_region_create(memory, PTRDIFF_MAX / 2, 0, &region), TUTTI_NO_MEMORY);
    tutti__far_memory_destroy(memory);
}

TUTTI_TEST(far_memory_opens_what_a_stream_may_touch)
{
    tutti_far_memory *memory;
    tutti_far_region *region;
    CHECK_OK(tutti__far_memory_create("far:0", NULL, &memory));
    CHECK_OK(tutti__far_region_create(memory, 3 * TUTTI_FAR_ALIGNMENT, 2, &region));
    char *second = region->stream_write[1] + TUTTI_FAR_ALIGNMENT;
    CHECK(is_closed(second, true));
    tutti__far_protect(second, 8, TUTTI_FAR_WRITE);
    *second = 7;
    CHECK(is_closed(region->stream_write[1], true));
    CHECK(is_closed(second + TUTTI_FAR_ALIGNMENT, true));
    CHECK(is_closed(region->stream_read[1] + TUTTI_FAR_ALIGNMENT, false));
    CHECK(is_closed(region->stream_write[0] + TUTTI_FAR_ALIGNMENT, false));
    tutti__far_protect(region->stream_read[0] + TUTTI_FAR_ALIGNMENT, 8, TUTTI_FAR_READ);
    CHECK_INT(region->stream_read[0][TUTTI_FAR_ALIGNMENT], 7);
    CHECK(is_closed(region->stream_read[0] + TUTTI_FAR_ALIGNMENT, true));
    tutti__far_protect(second, 8, TUTTI_FAR_CLOSED);
    CHECK(is_closed(second, false));
    tutti__far_region_destroy(memory, region);
    tutti__far_memory_destroy(memory);
}

/* As much as malloc would give, and no more: pages of a memory file come when they are written. */
TUTTI_TEST(far_memory_is_not_more_than_there_is)
{
    size_t size = (size_t)1 << 45;
    tutti_far_memory *memory;
    tutti_far_region *region;
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED) {
        munmap(at, size);
        SKIP("this machine promises more memory than there is");
    }
    CHECK_OK(tutti__far_memory_create("far:0", NULL, &memory));
    tutti_status status = tutti__far_region_create(memory, size, 2, &region);
    CHECK_INT(status, TUTTI_NO_MEMORY);
    tutti__far_memory_destroy(memory);
}
