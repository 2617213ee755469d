/* partition_test.c: TensorFlow's vectors; every row in one piece; placements. */
#include "service/store/partition.h"

#include <string.h>

#include "base/test.h"

static tutti_type matrix(int64_t rows, int64_t columns)
{
    return tutti_type_make(TUTTI_F32, 2, (int64_t[]){rows, columns});
}

TUTTI_TEST(partitioners_give_tensorflows_vectors)
{
    tutti_type t = matrix(6, 1);
    CHECK_INT(tutti__store_partition_min_size(&t, 4, 2), 2);
    CHECK_INT(tutti__store_partition_min_size(&t, 4, 10), 6);
    CHECK_INT(tutti__store_partition_max_size(&t, 4, 0), 6);
    CHECK_INT(tutti__store_partition_max_size(&t, 4, 2), 2);
    CHECK_INT(tutti__store_partition_max_size(&t, 1024, 0), 1);
    CHECK_INT(tutti__store_partition_fixed_size(&t, 2), 2);
    CHECK_INT(tutti__store_partition_fixed_size(&t, 10), 6); /* more shards than rows */
    t = matrix(4, 8);
    CHECK_INT(tutti__store_partition_variable_axis_size(&t, 1, 32, 0),
              4); /* 2 columns of 16 B each */
    CHECK_INT(tutti__store_partition_variable_axis_size(&t, 1, 1, 0), 8);
    CHECK_INT(tutti__store_partition_variable_axis_size(&t, 1, 1, 3), 3);
    t = matrix(7, 1);
    CHECK_INT(tutti__store_partition_min_size(&t, 8, 10), 3); /* 4 pieces would have one of 4 B */
}

static tutti_store_partition parsed(const char *text, const tutti_type *type)
{
    tutti_store_partition p;
    CHECK_OK(tutti__store_partition_parse(text, type, &p));
    return p;
}

TUTTI_TEST(partitioners_are_parsed)
{
    tutti_type t = matrix(6, 8);
    tutti_store_partition p;
    CHECK_INT(parsed("", &t).pieces, 1);
    CHECK_INT(parsed("fixed_size(4)", &t).pieces, 4);
    CHECK_INT(parsed("min_size(32, 3)", &t).pieces, 3);
    CHECK_INT(parsed("max_size(64)", &t).pieces, 3);
    CHECK_INT(parsed("max_size(64,2)", &t).pieces, 2);
    p = parsed("variable_axis_size(1, 48)", &t);
    CHECK_INT(p.axis, 1);
    CHECK_INT(p.pieces, 4);
    p = parsed("1,4", &t); /* what a variable's .partitioner said */
    CHECK_INT(p.axis, 1);
    CHECK_INT(p.pieces, 4);
    const char *const wrong[] = {"2,2",
                                 "4",
                                 "7,1",
                                 "fixed_size",
                                 "fixed_size(4",
                                 "fixed_size(x)",
                                 "fixed_size(1,2)",
                                 "min_size(4)",
                                 "1,",
                                 "variable_axis_size(2,4)",
                                 "halves(2)",
                                 "fixed_size(4))"};
    for (size_t i = 0; i < TUTTI_COUNT(wrong); i++)
        CHECK_STATUS(tutti__store_partition_parse(wrong[i], &t, &p), TUTTI_INVALID);
}

TUTTI_TEST(partition_has_every_row_in_one_piece)
{
    for (int64_t rows = 1; rows < 20; rows++)
        for (int64_t n = 1; n <= rows; n++) {
            tutti_type t = matrix(rows, 2);
            tutti_store_partition p = {0, n};
            int64_t sum = 0;
            for (int64_t i = 0; i < n; i++) {
                tutti_type piece = tutti__store_partition_type(&t, &p, i);
                CHECK(piece.dims[0] >= rows / n && piece.dims[0] <= rows / n + 1);
                for (int64_t r = 0; r < piece.dims[0]; r++, sum++)
                    CHECK_INT(tutti__store_partition_piece_of(&t, &p, sum), i);
            }
            CHECK_INT(sum, rows);
        }
}

TUTTI_TEST(partition_of_a_table_of_10_15_rows)
{
    tutti_type t = matrix(INT64_C(1000000000000000), 64);
    tutti_store_partition p = {0, tutti__store_partition_fixed_size(&t, 7)};
    CHECK_INT(p.pieces, 7);
    CHECK_INT(tutti__store_partition_begin(&t, &p, 7), t.dims[0]);
    CHECK_INT(tutti__store_partition_piece_of(&t, &p, t.dims[0] - 1), 6);
    CHECK_INT(tutti__store_partition_max_size(&t, INT64_C(1) << 40, 0), 232831);
}

static int to_last(const char *shard, int64_t bytes, int slots, void *context)
{
    TUTTI_UNUSED(shard);
    TUTTI_UNUSED(bytes);
    return slots - 1 + *(int *)context;
}

TUTTI_TEST(placement_by_turns_by_load_and_by_a_function)
{
    static const int64_t bytes[] = {100, 10, 20, 80, 5};
    static const int turns[] = {0, 1, 0, 1, 0}, load[] = {0, 1, 1, 1, 0};
    tutti_store_placement a, b, c;
    char text[200];
    int slot, ahead = 0;
    CHECK_OK(tutti__store_placement_create("", NULL, NULL, 2, &a));
    CHECK_OK(tutti__store_placement_create("least_loaded", NULL, NULL, 2, &b));
    CHECK_OK(tutti__store_placement_create("", to_last, &ahead, 2, &c));
    for (size_t i = 0; i < TUTTI_COUNT(bytes); i++) {
        CHECK_OK(tutti__store_placement_next(&a, "w", bytes[i], &slot));
        CHECK_INT(slot, turns[i]);
        CHECK_OK(tutti__store_placement_next(&b, "w", bytes[i], &slot));
        CHECK_INT(slot, load[i]);
        CHECK_OK(tutti__store_placement_next(&c, "w", bytes[i], &slot));
        CHECK_INT(slot, 1);
    }
    tutti__store_placement_print(&b, text, sizeof text);
    CHECK_STR(text, "ps 0: 2 shards, 0.0 MiB   ps 1: 3 shards, 0.0 MiB");
    ahead = 1;
    CHECK_STATUS(tutti__store_placement_next(&c, "w", 1, &slot), TUTTI_OUT_OF_RANGE);
    CHECK_STATUS(tutti__store_placement_create("spread", NULL, NULL, 2, &a), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "round_robin, least_loaded");
    tutti__store_placement_free(&a);
    tutti__store_placement_free(&b);
    tutti__store_placement_free(&c);
}
