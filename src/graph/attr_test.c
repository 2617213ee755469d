#include "graph/attr.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/test.h"

static tutti_status nothing(tutti_infer *node)
{
    return tutti_fail(TUTTI_UNSUPPORTED, "%s only has attributes", node->op->name);
}

static const tutti_attr_spec table[] = {
    {"axis", TUTTI_ATTR_INT, "-1"},         {"keep", TUTTI_ATTR_INT, "true"},
    {"dtype", TUTTI_ATTR_INT, "bf16"},      {"rate", TUTTI_ATTR_FLOAT, "1.5e-3"},
    {"padding", TUTTI_ATTR_STRING, "same"}, {"strides", TUTTI_ATTR_INTS, "[1, 2,3]"},
    {"bounds", TUTTI_ATTR_FLOATS, "[]"},    {"types", TUTTI_ATTR_TYPES, ""},
    {"must", TUTTI_ATTR_INT, NULL},         {0},
};

static const tutti_op with_attrs = {.name = "test.attrs", .attrs = table, .infer = nothing};

static tutti_status complete(tutti_graph *graph, int count, const tutti_attr *given,
                             tutti_attr **ret)
{
    int all = 0;
    TUTTI_TRY(tutti__attrs_complete(graph, &with_attrs, count, given, &all, ret));
    CHECK_INT(all, TUTTI_COUNT(table) - 1);
    return TUTTI_OK;
}

TUTTI_TEST(attributes_left_out_get_their_defaults)
{
    tutti_graph *graph = NULL;
    tutti_attr *attrs = NULL;
    const int64_t *strides;
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_OK(complete(graph, 1, &TUTTI_INT("must", 7), &attrs));
    CHECK_INT(tutti_attr_int(attrs, 9, "axis"), -1);
    CHECK_INT(tutti_attr_int(attrs, 9, "keep"), 1);
    CHECK_INT(tutti_attr_int(attrs, 9, "dtype"), TUTTI_BF16);
    CHECK_NEAR(tutti_attr_float(attrs, 9, "rate"), 1.5e-3, 0);
    CHECK_STR(tutti_attr_string(attrs, 9, "padding"), "same");
    CHECK_INT(tutti_attr_ints(attrs, 9, "strides", &strides), 3);
    CHECK_INT(strides[2], 3);
    CHECK_INT(tutti_attr_find(attrs, 9, "bounds")->count, 0);
    CHECK_INT(tutti_attr_find(attrs, 9, "types")->count, 0);
    CHECK_INT(tutti_attr_int(attrs, 9, "must"), 7);
    CHECK(tutti_attr_find(attrs, 9, "none") == NULL);
    CHECK_STR(attrs[3].name, "rate"); /* in the table's order */
    tutti_graph_destroy(graph);
}

TUTTI_TEST(attributes_are_copied_in_any_order)
{
    tutti_graph *graph = NULL;
    tutti_attr *attrs = NULL;
    int64_t strides[] = {4, 5};
    double bounds[] = {0.5};
    char padding[] = "va\0id";
    tutti_type types[] = {{.dtype = TUTTI_I32, .rank = 1, .dims = {TUTTI_ANY}}};
    tutti_attr given[] = {
        TUTTI_TYPES_ATTR("types", 1, types),
        TUTTI_INTS("strides", 2, strides),
        TUTTI_INT("must", INT64_MIN),
        {.name = "padding", .kind = TUTTI_ATTR_STRING, .count = 5, .value.s = padding},
        TUTTI_FLOATS("bounds", 1, bounds)};
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_OK(complete(graph, TUTTI_COUNT(given), given, &attrs));
    memset(strides, 0, sizeof strides);
    memset(bounds, 0, sizeof bounds);
    memset(padding, 0, sizeof padding);
    memset(types, 0, sizeof types);
    CHECK_INT(attrs[5].value.ints[1], 5);
    CHECK_NEAR(attrs[6].value.floats[0], 0.5, 0);
    CHECK_INT(attrs[4].count, 5);
    CHECK(memcmp(attrs[4].value.s, "va\0id", 6) == 0); /* and a NUL behind it */
    CHECK_INT(attrs[7].value.types[0].dtype, TUTTI_I32);
    CHECK_INT(attrs[8].value.i, INT64_MIN);
    tutti_graph_destroy(graph);
}

TUTTI_TEST(wrong_attributes_are_refused)
{
    tutti_graph *graph = NULL;
    tutti_attr *attrs = NULL;
    tutti_attr kind[] = {TUTTI_INT("must", 1), TUTTI_FLOAT("axis", 1)};
    tutti_attr unknown[] = {TUTTI_INT("must", 1), TUTTI_INT("axes", 1)};
    tutti_attr twice[] = {TUTTI_INT("axis", 0), TUTTI_INT("must", 1), TUTTI_INT("axis", 5)};
    tutti_attr negative[] = {TUTTI_INT("must", 1), TUTTI_INTS("strides", -2, (int64_t[]){1})};
    tutti_attr nowhere[] = {TUTTI_INT("must", 1), TUTTI_FLOATS("bounds", 2, NULL)};
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_STATUS(complete(graph, 0, NULL, &attrs), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "needs attribute 'must'");
    CHECK_STATUS(complete(graph, 2, kind, &attrs), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "'axis' is given as float, needs int");
    CHECK_STATUS(complete(graph, 2, unknown, &attrs), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "no attribute 'axes'; it takes axis, keep, dtype");
    CHECK_STATUS(complete(graph, 3, twice, &attrs), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "attribute 'axis' is given twice");
    CHECK_STATUS(complete(graph, 2, negative, &attrs), TUTTI_INVALID);
    CHECK_STATUS(complete(graph, 2, nowhere, &attrs), TUTTI_INVALID);
    CHECK(attrs == NULL);
    tutti_graph_destroy(graph);
}

TUTTI_TEST(attribute_texts_that_make_no_sense_are_refused)
{
    static const struct {
        tutti_attr_kind kind;
        const char *text;
    } bad[] = {
        {TUTTI_ATTR_INT, ""},       {TUTTI_ATTR_INT, "1x"},     {TUTTI_ATTR_INT, "maybe"},
        {TUTTI_ATTR_FLOAT, "one"},  {TUTTI_ATTR_FLOAT, "1.5,"}, {TUTTI_ATTR_INTS, "1,2"},
        {TUTTI_ATTR_INTS, "[1,2"},  {TUTTI_ATTR_INTS, "[1.5]"}, {TUTTI_ATTR_INTS, "[1] 2"},
        {TUTTI_ATTR_FLOATS, "[x]"}, {TUTTI_ATTR_TENSOR, "0"},   {TUTTI_ATTR_GRAPH, ""},
    };
    tutti_arena arena = {0};
    tutti_attr attr = {.count = 99};
    for (size_t i = 0; i < TUTTI_COUNT(bad); i++) {
        tutti_attr_spec spec = {"it", bad[i].kind, NULL};
        if (tutti__attr_parse(&arena, &spec, bad[i].text, &attr) != TUTTI_INVALID)
            tutti__test_fail(__FILE__, __LINE__, "\"%s\" was read", bad[i].text);
        CHECK_INT(attr.count, 99);
    }
    tutti__arena_free(&arena);
}

TUTTI_TEST(attribute_texts_without_memory_are_refused)
{
    if (TUTTI_TEST_SANITIZED)
        SKIP("sanitizers want address space of their own");
    size_t size = (size_t)64 << 20;
    char *text = malloc(size + 1);
    CHECK(text != NULL);
    memset(text, 'x', size);
    text[size] = '\0';
    struct rlimit before;
    tutti_arena arena = {0};
    tutti_attr attr = {.count = 99};
    tutti_attr_spec spec = {"it", TUTTI_ATTR_STRING, NULL};
    CHECK_INT(getrlimit(RLIMIT_AS, &before), 0);
    CHECK_INT(setrlimit(RLIMIT_AS, &(struct rlimit){1, before.rlim_max}), 0);
    tutti_status status = tutti__attr_parse(&arena, &spec, text, &attr);
    CHECK_INT(setrlimit(RLIMIT_AS, &before), 0);
    CHECK_INT(status, TUTTI_NO_MEMORY);
    CHECK_INT(attr.count, 99);
    tutti__arena_free(&arena);
    free(text);
}

TUTTI_TEST(attributes_compare_by_value)
{
    const int64_t a[] = {1, 2}, b[] = {1, 2}, c[] = {1, 3};
    tutti_attr first = TUTTI_INTS("x", 2, a), same = TUTTI_INTS("x", 2, b),
               other = TUTTI_INTS("x", 2, c);
    tutti_attr shorter = TUTTI_INTS("x", 1, a), named = TUTTI_INTS("y", 2, a);
    CHECK(tutti__attr_equal(&first, &same));
    CHECK(tutti__attr_hash(3, &first) == tutti__attr_hash(3, &same));
    CHECK(!tutti__attr_equal(&first, &other));
    CHECK(!tutti__attr_equal(&first, &shorter));
    CHECK(!tutti__attr_equal(&first, &named));
    CHECK(tutti__attr_hash(3, &first) != tutti__attr_hash(3, &other));
    CHECK(tutti__attr_hash(3, &first) != tutti__attr_hash(4, &first));
    CHECK(!tutti__attr_equal(&TUTTI_FLOAT("x", 0.0), &TUTTI_FLOAT("x", -0.0)));
    CHECK(!tutti__attr_equal(&TUTTI_INT("x", 0), &TUTTI_FLOAT("x", 0)));
}

/* A view and its contiguous copy hold the same values. */
TUTTI_TEST(tensors_hash_by_value_whatever_their_strides)
{
    tutti_tensor *base = NULL, *view = NULL, *copy = NULL, *other = NULL;
    int64_t values[] = {(INT64_C(1) << 60) + 1, 2, (INT64_C(1) << 60) + 3, 4};
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 2, (int64_t[]){2, 2}, values, &base));
    CHECK_OK(tutti_tensor_slice(base, 1, 0, 1, 1, &view));
    CHECK_OK(tutti_tensor_contiguous(view, &copy));
    values[2]--; /* a double would not see this */
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 2, (int64_t[]){2, 1}, (int64_t[]){values[0], values[2]},
                               &other));
    tutti_attr a = TUTTI_TENSOR_ATTR("v", view), b = TUTTI_TENSOR_ATTR("v", copy),
               c = TUTTI_TENSOR_ATTR("v", other);
    CHECK(!tutti_tensor_is_contiguous(view));
    CHECK(tutti__attr_equal(&a, &b));
    CHECK(tutti__attr_hash(0, &a) == tutti__attr_hash(0, &b));
    CHECK(!tutti__attr_equal(&a, &c));
    CHECK(tutti__attr_hash(0, &a) != tutti__attr_hash(0, &c));
    tutti_tensor_release(base);
    tutti_tensor_release(view);
    tutti_tensor_release(copy);
    tutti_tensor_release(other);
}
