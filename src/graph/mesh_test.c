/* mesh_test.c: meshes and shardings as values. */
#include <string.h>

#include "base/test.h"
#include "graph/mesh.h"

static tutti_mesh *make_mesh(const char *axes, const char *devices)
{
    tutti_mesh *mesh = NULL;
    CHECK_OK(tutti__mesh_create(axes, devices, &mesh));
    return mesh;
}

TUTTI_TEST(mesh_counts_in_row_major_order)
{
    tutti_mesh *mesh =
        make_mesh("data=2, model=3", "cpu:0,cpu:1,cpu:2,far:0,far:1,/job:w/task:1/cpu:0");
    int first;
    CHECK_INT(mesh->device_count, 6);
    CHECK_INT(tutti__mesh_axis(mesh, "model"), 1);
    CHECK_INT(tutti__mesh_axis(mesh, "mode"), -1);
    CHECK_INT(tutti__mesh_find(mesh, "/far:1"), 4);
    CHECK_INT(tutti__mesh_find(mesh, "/job:w/task:1/cpu:0"), 5);
    CHECK_INT(tutti__mesh_find(mesh, "/job:w/task:2/cpu:0"), -1);
    CHECK_INT(tutti__mesh_rank(mesh, 4, 0, &first), 1); /* far:1 with cpu:1 along data */
    CHECK_INT(first, 1);
    CHECK_INT(tutti__mesh_rank(mesh, 4, 1, &first), 1); /* with far:0 and the last along model */
    CHECK_INT(first, 3);
    tutti_text text = {0};
    tutti__mesh_print(&text, mesh);
    CHECK_STR(text.data, "data=2,model=3");
    tutti__text_free(&text);
    tutti__mesh_destroy(mesh);
}

static void check_round_trip(const char *text, int rank, const char *printed)
{
    tutti_arena arena = {0};
    tutti_sharding one, two;
    tutti_text out = {0};
    CHECK_OK(tutti__sharding_parse(text, rank, NULL, &arena, &one));
    tutti__sharding_print(&out, &one, rank);
    CHECK_STR(out.data, printed);
    CHECK_OK(tutti__sharding_parse(out.data, rank, NULL, &arena, &two));
    CHECK(tutti__sharding_equal(&one, &two));
    tutti__text_free(&out);
    tutti__arena_free(&arena);
}

TUTTI_TEST(sharding_texts_make_the_round_trip)
{
    check_round_trip("[]", 0, "[]");
    check_round_trip("[] partial(sum: data)", 0, "[] partial(sum: data)");
    check_round_trip(" [ data , - , expert * model ]", 3, "[data, -, expert*model]");
    check_round_trip("[-] varying(a) partial(max: b, c) partial(sum: d)", 1,
                     "[-] partial(sum: d) partial(max: b, c) varying(a)");
}

static void check_equal(const char *a, const char *b, bool equal)
{
    tutti_arena arena = {0};
    tutti_sharding one, two;
    CHECK_OK(tutti__sharding_parse(a, 2, NULL, &arena, &one));
    CHECK_OK(tutti__sharding_parse(b, 2, NULL, &arena, &two));
    CHECK(tutti__sharding_equal(&one, &two) == equal);
    CHECK(tutti__sharding_equal(&two, &one) == equal);
    tutti__arena_free(&arena);
}

TUTTI_TEST(shardings_are_equal_when_they_say_the_same)
{
    static const tutti_axis_shard replicated = {.axis = "data", .kind = TUTTI_REPLICATED};
    CHECK(tutti__sharding_equal(NULL, &(tutti_sharding){1, &replicated}));
    check_equal("[a, b]", "[a, b]", true);
    check_equal("[a, b]", "[b, a]", false);
    check_equal("[a*b, -]", "[b*a, -]", false); /* which is outermost matters */
    check_equal("[a, b] partial(sum: c, d)", "[a, b] partial(sum: d, c)", true);
    check_equal("[a, -] partial(sum: c)", "[a, -] partial(max: c)", false);
    check_equal("[a, -]", "[a, -] varying(c)", false);
    check_equal("[-, -] partial(sum: c)", "[-, -] varying(c)", false);
}

static void check_refused(const char *text, int rank, const char *message)
{
    tutti_mesh *mesh = make_mesh("data=2,model=2", "cpu:0,cpu:1,cpu:2,cpu:3");
    tutti_arena arena = {0};
    tutti_sharding sharding;
    CHECK_STATUS(tutti__sharding_parse(text, rank, mesh, &arena, &sharding), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), message);
    tutti__arena_free(&arena);
    tutti__mesh_destroy(mesh);
}

TUTTI_TEST(shardings_that_cannot_be_are_refused)
{
    check_refused("data,-", 2, "needs '['");
    check_refused("[data]", 2, "has 1 dimensions, the value has 2");
    check_refused("[data, -, -]", 2, "more dimensions than the value: 2");
    check_refused("[data, data]", 2, "names axis 'data' twice");
    check_refused("[data, mode]", 2, "the mesh data=2,model=2 has no axis 'mode'");
    check_refused("[data, ]", 2, "needs the name of a mesh axis");
    check_refused("[data -]", 2, "needs ',' or ']'");
    check_refused("[-] partial(data)", 1, "needs sum, mean, min, max or prod");
    check_refused("[-] partial(sum: data", 1, "needs ')'");
    check_refused("[-] some", 1, "needs partial(…) or varying(…)");
}

/* The pieces of all devices cover every element as often as axes do not cut it. */
static void check_boxes(const char *text, const int64_t dims[2], int times)
{
    enum { MOST = 64 };
    tutti_mesh *mesh = make_mesh("data=2,model=3", "cpu:0,cpu:1,cpu:2,cpu:3,cpu:4,cpu:5");
    tutti_arena arena = {0};
    tutti_sharding sharding;
    int seen[MOST] = {0};
    CHECK_OK(tutti__sharding_parse(text, 2, mesh, &arena, &sharding));
    for (int place = 0; place < mesh->device_count; place++) {
        int64_t offset[2], size[2];
        CHECK_OK(tutti__sharding_box(&sharding, mesh, place, 2, dims, offset, size));
        for (int64_t i = offset[0]; i < offset[0] + size[0]; i++)
            for (int64_t k = offset[1]; k < offset[1] + size[1]; k++)
                seen[i * dims[1] + k]++;
    }
    for (int64_t i = 0; i < dims[0] * dims[1]; i++)
        CHECK_INT(seen[i], times);
    tutti__arena_free(&arena);
    tutti__mesh_destroy(mesh);
}

TUTTI_TEST(pieces_of_all_devices_cover_a_value)
{
    check_boxes("[-, -]", (int64_t[]){3, 5}, 6);
    check_boxes("[data, model]", (int64_t[]){5, 7}, 1);
    check_boxes("[data*model, -]", (int64_t[]){7, 2}, 1);
    check_boxes("[model*data, -]", (int64_t[]){1, 4}, 1); /* most have nothing */
    check_boxes("[-, data] partial(sum: model)", (int64_t[]){2, 9}, 3);
}

TUTTI_TEST(pieces_begin_where_the_floor_of_their_share_is)
{
    tutti_mesh *mesh = make_mesh("data=4", "cpu:0,cpu:1,cpu:2,cpu:3");
    static const tutti_axis_shard split = {.axis = "data", .kind = TUTTI_SPLIT};
    tutti_sharding sharding = {1, &split};
    int64_t offset, size, large = INT64_C(1) << 62;
    for (int place = 0; place < 4; place++) {
        CHECK_OK(
            tutti__sharding_box(&sharding, mesh, place, 1, (int64_t[]){50257}, &offset, &size));
        CHECK_INT(offset, 50257 * place / 4);
        CHECK_OK(tutti__sharding_box(&sharding, mesh, place, 1, &large, &offset, &size));
        CHECK_INT(offset, (large >> 2) * place);
    }
    tutti__mesh_destroy(mesh);
}

TUTTI_TEST(meshes_have_groups_along_any_axes)
{
    tutti_mesh *mesh;
    int axes[TUTTI_MESH_AXES], count, places[6];
    CHECK_OK(tutti__mesh_create("a=2,b=3,c=2",
                                "far:0,far:1,far:2,far:3,far:4,far:5,far:6,far:7,far:8,far:9,"
                                "far:10,far:11",
                                &mesh));
    CHECK_OK(tutti__mesh_axes(mesh, "c*a", axes, &count));
    CHECK_INT(count, 2);
    CHECK_INT(tutti__mesh_group(mesh, 9, axes, count, NULL), 4); /* a=1, b=1, c=1 */
    CHECK_INT(tutti__mesh_group(mesh, 9, axes, count, places), 4);
    CHECK_INT(places[0], 2); /* c=0, a=0; then a=1; then c=1 */
    CHECK_INT(places[1], 8);
    CHECK_INT(places[2], 3);
    CHECK_INT(places[3], 9);
    CHECK_OK(tutti__mesh_axes(mesh, "a*b", axes, &count));
    CHECK_INT(tutti__mesh_group(mesh, 3, axes, count, places), 6);
    for (int r = 0; r < 6; r++)
        CHECK_INT(places[r], 2 * r + 1);
    CHECK_STATUS(tutti__mesh_axes(mesh, "a*d", axes, &count), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "no axis 'd'; it is a=2,b=3,c=2");
    CHECK_STATUS(tutti__mesh_axes(mesh, "a*a", axes, &count), TUTTI_INVALID);
    CHECK_STATUS(tutti__mesh_axes(mesh, "", axes, &count), TUTTI_INVALID);
    tutti__mesh_destroy(mesh);
}
