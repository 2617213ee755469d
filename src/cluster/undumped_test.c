/* undumped_test.c: memory that is in no core file. */
#include "cluster/undumped.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

/* Whether the mapping of an address is left out of core files: dd among its flags. */
static bool is_undumped(const void *memory)
{
    char line[512], *flags = NULL;
    unsigned long first, last;
    bool here = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    CHECK(file != NULL);
    while (flags == NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%lx-%lx ", &first, &last) == 2)
            here = (uintptr_t)memory >= first && (uintptr_t)memory < last;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            flags = strstr(line, " dd");
    }
    fclose(file);
    return flags != NULL;
}

TUTTI_TEST(undumped_memory_of_every_size_is_in_no_core_file)
{
    char here;
    CHECK(!is_undumped(&here));
    for (size_t size = 1; size < (size_t)1 << 22; size = size * 3 + 1) {
        char *memory = tutti__undumped_allocate(size);
        CHECK(memory != NULL && (uintptr_t)memory % _Alignof(max_align_t) == 0);
        CHECK(is_undumped(memory) && is_undumped(memory + size - 1));
        memset(memory, 1, size);
        tutti__undumped_free(memory);
    }
    CHECK(tutti__undumped_allocate(0) == NULL);
    CHECK(tutti__undumped_allocate(SIZE_MAX) == NULL);
    tutti__undumped_free(NULL);
}

TUTTI_TEST(undumped_memory_keeps_what_is_in_it_as_it_grows_and_is_wiped_in_the_end)
{
    char *memory = tutti__undumped_resize(NULL, 1);
    *memory = 0;
    for (size_t size = 2; size < 300000; size = size * 2 + 1) {
        memory = tutti__undumped_resize(memory, size);
        CHECK(memory != NULL);
        for (size_t i = 0; i < size / 2; i++)
            CHECK(memory[i] == (char)i);
        for (size_t i = 0; i < size; i++)
            memory[i] = (char)i;
    }
    CHECK(tutti__undumped_resize(memory, SIZE_MAX) == NULL && memory[5] == 5);
    CHECK(tutti__undumped_resize(memory, 0) == NULL);
    char *secret = tutti__undumped_allocate(100);
    memset(secret, 7, 100);
    tutti__undumped_free(secret);
    char *again = tutti__undumped_allocate(100);
    CHECK(again == secret); /* as it was left */
    for (int i = 0; i < 100; i++)
        CHECK(again[i] == 0);
    tutti__undumped_free(again);
}

static void *allocate_often(void *stop)
{
    static const size_t sizes[] = {1, 100, 5000, 70000};
    for (size_t i = 0; !atomic_load((atomic_bool *)stop); i++)
        tutti__undumped_free(tutti__undumped_allocate(sizes[i % 4]));
    return NULL;
}

TUTTI_TEST(undumped_memory_is_there_for_threads_and_in_children_of_fork)
{
    pthread_t threads[2];
    atomic_bool stop = false;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, allocate_often, &stop) == 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(10); /* a lock that a thread held as it forked would be held for good */
            void *memory = tutti__undumped_allocate(100);
            _exit(memory != NULL ? 0 : 1);
        }
        int how = 1;
        CHECK(waitpid(child, &how, 0) == child);
        CHECK_INT(how, 0);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}
