#include "program/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "base/world.h"

typedef struct cache {
    char folder[64], path[128];
} cache;

static cache cache_make(void)
{
    cache c = {"/tmp/tutti-tune-XXXXXX", ""};
    CHECK(mkdtemp(c.folder) != NULL);
    snprintf(c.path, sizeof c.path, "%s/deep/kernels.txt", c.folder);
    return c;
}

static void cache_remove(cache *c)
{
    const tutti_world *world = tutti__world();
    (void)world->remove_file(world->self, c->path);
    snprintf(c->path, sizeof c->path, "%s/deep", c->folder);
    CHECK_OK(world->remove_file(world->self, c->path));
    CHECK_OK(world->remove_file(world->self, c->folder));
}

static tutti_choices two_choices(void)
{
    tutti_choices choices = {0};
    CHECK_OK(tutti__choices_add(&choices, &(tutti_choice){0x1234, "conv2d.direct", 1500}));
    CHECK_OK(tutti__choices_add(&choices, &(tutti_choice){UINT64_MAX, "conv2d.winograd", 2e6}));
    CHECK_OK(tutti__choices_add(&choices, &(tutti_choice){0x1234, "another", 1}));
    CHECK_INT(choices.count, 2);
    return choices;
}

TUTTI_TEST(choices_come_back_from_their_file)
{
    cache c = cache_make();
    tutti_choices choices = two_choices(), again = {0};
    CHECK_OK(tutti__choices_write(&choices, c.path));
    tutti__choices_read(&again, c.path);
    CHECK_INT(again.count, 2);
    const tutti_choice *found = tutti__choices_find(&again, UINT64_MAX);
    CHECK(found != NULL);
    CHECK_STR(found->kernel, "conv2d.winograd");
    CHECK(tutti__choices_find(&again, 0x4321) == NULL);
    CHECK_STR(tutti__choices_find(&again, 0x1234)->kernel, "conv2d.direct");
    TUTTI_VEC_FREE(&choices);
    TUTTI_VEC_FREE(&again);
    cache_remove(&c);
}

/* Every byte changed, every length cut: nothing is taken from such a file, and nothing fails. */
TUTTI_TEST(damaged_choices_are_ignored)
{
    cache c = cache_make();
    const tutti_world *world = tutti__world();
    tutti_choices choices = two_choices();
    CHECK_OK(tutti__choices_write(&choices, c.path));
    void *text;
    size_t size;
    CHECK_OK(world->read_file(world->self, c.path, 1 << 16, &text, &size));
    for (size_t i = 0; i < 2 * size; i++) {
        tutti_choices found = {0};
        char *damaged = malloc(size + 1);
        CHECK(damaged != NULL);
        memcpy(damaged, text, size);
        damaged[i % size] ^= 0x11;
        (void)tutti_fail(TUTTI_IO, "before");
        CHECK_OK(world->write_file(world->self, c.path, damaged, i < size ? size : i - size));
        tutti__choices_read(&found, c.path);
        CHECK_INT(found.count, 0);
        CHECK_STR(tutti_error_message(), "before");
        free(damaged);
    }
    free(text);
    TUTTI_VEC_FREE(&choices);
    cache_remove(&c);
}
