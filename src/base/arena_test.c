#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/test.h"

TUTTI_TEST(arena_gives_zeroed_aligned_memory)
{
    tutti_arena arena = {0};
    for (int round = 0; round < 2; round++) {
        for (size_t size = 0; size < 3000; size += 7) {
            unsigned char *memory = tutti__arena_take(&arena, size);
            CHECK(memory != NULL && (uintptr_t)memory % 16 == 0);
            for (size_t i = 0; i < size; i++)
                CHECK(memory[i] == 0);
            memset(memory, 0xff, size);
        }
        tutti__arena_reset(&arena);
    }
    tutti__arena_free(&arena);
    CHECK_INT(arena.total, 0);
}

TUTTI_TEST(arena_pieces_do_not_overlap)
{
    tutti_arena arena = {0};
    char *a = tutti__arena_take(&arena, 0), *b = tutti__arena_take(&arena, 0);
    CHECK(a != b);
    unsigned char *pieces[200];
    for (int i = 0; i < 200; i++)
        memset(pieces[i] = tutti__arena_take(&arena, 100), i, 100);
    for (int i = 0; i < 200; i++)
        for (int j = 0; j < 100; j++)
            CHECK_INT(pieces[i][j], i);
    tutti__arena_free(&arena);
}

TUTTI_TEST(arena_refuses_sizes_that_overflow)
{
    tutti_arena arena = {0};
    CHECK(tutti__arena_take(&arena, SIZE_MAX) == NULL);
    CHECK(tutti__arena_take(&arena, SIZE_MAX - 15) == NULL);
    CHECK(tutti__arena_array(&arena, SIZE_MAX / 2, 3) == NULL);
    CHECK(tutti__arena_bytes(&arena, "", SIZE_MAX) == NULL);
    CHECK_INT(arena.total, 0);
    CHECK(tutti__arena_array(&arena, 10, 8) != NULL);
    tutti__arena_free(&arena);
}

TUTTI_TEST(arena_copies_text)
{
    tutti_arena arena = {0};
    CHECK(tutti__arena_string(&arena, NULL) == NULL);
    CHECK_STR(tutti__arena_string(&arena, "dense"), "dense");
    CHECK_STR(tutti__arena_bytes(&arena, "dense", 3), "den");
    CHECK_STR(tutti__arena_bytes(&arena, NULL, 0), "");
    CHECK_STR(tutti__arena_format(&arena, "%s_%d", "dense", 7), "dense_7");
    CHECK_INT(strlen(tutti__arena_format(&arena, "%09000d", 1)), 9000);
    CHECK_INT(strlen(tutti__arena_format(&arena, "%0255d", 1)), 255);
    CHECK_INT(strlen(tutti__arena_format(&arena, "%0256d", 1)), 256);
    tutti__arena_free(&arena);
}

TUTTI_TEST(arena_reset_keeps_the_largest_block)
{
    tutti_arena arena = {0};
    tutti__arena_reset(&arena);
    tutti__arena_take(&arena, 10);
    tutti__arena_take(&arena, 100000);
    tutti__arena_take(&arena, 20);
    tutti__arena_reset(&arena);
    size_t kept = arena.total;
    CHECK(kept >= 100000);
    for (int i = 0; i < 100; i++)
        tutti__arena_take(&arena, 1000);
    CHECK_INT(arena.total, kept);
    tutti__arena_free(&arena);
    tutti__arena_free(&arena);
}
