#include "base/pointers.h"

#include "base/test.h"

static void fill(tutti_pointers *map)
{
    enum { MANY = 3000 };
    static char things[MANY];
    CHECK_INT(tutti__pointers_get(map, &things[0]), -1);
    for (int i = 0; i < MANY; i++) {
        CHECK_INT(tutti__pointers_get(map, &things[i]), -1);
        CHECK(tutti__pointers_add(map, &things[i], i));
    }
    for (int i = 0; i < MANY; i++)
        CHECK_INT(tutti__pointers_get(map, &things[i]), i);
    CHECK_INT(map->count, MANY);
    tutti__pointers_free(map);
    CHECK_INT(tutti__pointers_get(map, &things[0]), -1);
    CHECK_INT(map->count, 0);
}

TUTTI_TEST(pointers_have_their_numbers)
{
    tutti_arena arena = {0};
    tutti_pointers map = {0}, lasting = {.arena = &arena};
    fill(&map);
    fill(&lasting);
    tutti__arena_free(&arena);
}
