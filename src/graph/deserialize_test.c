#include "graph/round_trip.h"

#include "base/random.h"
#include "base/shortage.h"

TUTTI_TEST(every_cut_and_every_flipped_bit_is_noticed)
{
    tutti_graph *g = rich_graph(), *copy = NULL;
    bytes b = written(g);
    tutti_graph_destroy(g);
    for (size_t size = 0; size < b.size; size++)
        CHECK_STATUS(tutti_graph_deserialize(b.data, size, &copy), TUTTI_CORRUPT);
    for (size_t bit = 0; bit < 8 * b.size; bit++) {
        b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CHECK_STATUS(tutti_graph_deserialize(b.data, b.size, &copy), TUTTI_CORRUPT);
        b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    b.data = realloc(b.data, b.size + 1);
    b.data[b.size] = 0;
    CHECK_STATUS(tutti_graph_deserialize(b.data, b.size + 1, &copy), TUTTI_CORRUPT);
    CHECK_STATUS(tutti_graph_deserialize(NULL, 0, &copy), TUTTI_CORRUPT);
    CHECK(copy == NULL);
    free(b.data);
}

/* Damage with a right checksum: refused, or a graph that keeps all promises. */
TUTTI_TEST(damage_that_is_sealed_does_no_harm)
{
    tutti_graph *g = rich_graph();
    bytes b = written(g);
    tutti_random_key key = {.seed = 7};
    int refused = 0, rounds = TUTTI_TEST_SANITIZED ? 2000 : 8000;
    tutti_graph_destroy(g);
    for (int round = 0; round < rounds; round++) {
        bytes bad = {malloc(b.size), b.size};
        memcpy(bad.data, b.data, b.size);
        for (uint64_t i = 0; i < 3; i++) {
            uint64_t n = (uint64_t)round * 8 + 2 * i;
            size_t at =
                TUTTI_GRAPH_HEADER + tutti__random_below(key, n, b.size - TUTTI_GRAPH_HEADER);
            bad.data[at] = (unsigned char)tutti__random_below(key, n + 1, 256);
            if (round % 2)
                break;
        }
        if (round % 5 == 0)
            bad.size -=
                tutti__random_below(key, (uint64_t)round * 8 + 7, b.size - TUTTI_GRAPH_HEADER);
        seal(bad);
        tutti_graph *copy = NULL;
        tutti_status status = tutti_graph_deserialize(bad.data, bad.size, &copy);
        CHECK(status == TUTTI_OK || copy == NULL);
        CHECK(status != TUTTI_INTERNAL);
        if (status == TUTTI_OK) {
            CHECK_OK(tutti_graph_verify(copy));
            round_trip(copy);
        }
        refused += status != TUTTI_OK;
        tutti_graph_destroy(copy);
        free(bad.data);
    }
    CHECK(refused > rounds / 2 && refused < rounds);
    free(b.data);
}

static void read_without_memory(tutti_graph *g)
{
    tutti_graph *copy = NULL;
    bytes b = written(g);
    int failures = 0;
    tutti_graph_destroy(g);
    tutti_shortage shortage = tutti__shortage_begin();
    tutti_status status;
    do {
        status = tutti_graph_deserialize(b.data, b.size, &copy);
        failures += status != TUTTI_OK;
    } while (status == TUTTI_NO_MEMORY && tutti__shortage_ease(&shortage));
    tutti__shortage_end(&shortage);
    CHECK_OK(status);
    CHECK(failures > 2);
    tutti_graph_destroy(copy);
    free(b.data);
}

/* Wherever memory ends, it is not the bytes that are blamed. */
TUTTI_TEST(reading_without_memory_says_so)
{
    tutti__shortage_or_skip();
    tutti_graph *g = new_graph();
    tutti_placeholder_named(g, "x", TUTTI_F32, 2, 3); /* so few bytes that none can be skipped */
    read_without_memory(g);
    read_without_memory(rich_graph());
}

/* What the writer puts down for a graph that lies; the reader must find it out. */
static void refused(tutti_graph *graph, tutti_status status, const char *why)
{
    bytes b = written(graph);
    tutti_graph *copy = NULL;
    CHECK_STATUS(tutti_graph_deserialize(b.data, b.size, &copy), status);
    CHECK_CONTAINS(tutti_error_message(), why);
    CHECK(copy == NULL);
    free(b.data);
    tutti_graph_destroy(graph);
}

TUTTI_TEST(lies_about_types_are_found_out)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, TUTTI_ANY), y = tutti_neg(x);
    y.node->types[0].dims[0] = 1 << 20;
    refused(
        g, TUTTI_CORRUPT,
        "output 0 of neg 'neg' is announced as f32[1048576], but the operator's shape rule says f32[?]");
    g = new_graph();
    x = tutti_placeholder_named(g, "x", TUTTI_F32, 2);
    x.node->attrs[1].value.ints = (int64_t[]){-7};
    refused(g, TUTTI_CORRUPT, "placeholder 'x'");
}

TUTTI_TEST(lies_about_edges_are_found_out)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, 2), y = tutti_neg(x), z = tutti_neg(y);
    y.node->inputs[0].node = z.node;
    refused(g, TUTTI_CORRUPT, "an edge names node 2, but must name one before node 1");
    g = new_graph();
    x = tutti_placeholder_named(g, "x", TUTTI_F32, 2);
    y = tutti_neg(x);
    y.node->inputs[0].index = 1;
    refused(g, TUTTI_CORRUPT, "output 1 of placeholder 'x', which has 1");
    g = new_graph();
    x = tutti_placeholder_named(g, "x", TUTTI_F32, 2);
    y = tutti_neg(x);
    CHECK_OK(tutti__node_after(x.node, y.node));
    refused(g, TUTTI_CORRUPT, "an edge names node 1");
    g = new_graph();
    x = tutti_placeholder_named(g, "x", TUTTI_F32, 2);
    y = tutti_neg(x);
    x.node->colocate = y.node;
    round_trip(g); /* a neighbour may come later */
    y.node->colocate = x.node;
    refused(g, TUTTI_CORRUPT, "stands beside itself");
}

TUTTI_TEST(handles_where_values_are_wanted_are_found_out)
{
    tutti_graph *g = new_graph();
    tutti_sym v = tutti_variable(g, tutti_zeros(2), .name = "v"), y = tutti_neg(v);
    y.node->inputs[0] = tutti__edge(v);
    refused(g, TUTTI_CORRUPT, "neg 'neg': input 0 ('v') is a handle, needs a value");
}

static void two_negated(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                        void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    *(tutti_node **)context = args[1].node;
    ret[0] = tutti_add(tutti_neg(args[0]), args[1]);
}

TUTTI_TEST(parameters_of_one_index_are_found_out)
{
    tutti_graph *g = new_graph();
    tutti_node *second = NULL;
    tutti_sym p = tutti_placeholder_named(g, "p", TUTTI_BOOL),
              x = tutti_placeholder_named(g, "x", TUTTI_F32, 2);
    tutti_cond(p, two_negated, two_negated, &second, 2, ((tutti_sym[]){x, x}), 1, NULL);
    round_trip(g);
    second->attrs[0].value.i = 0;
    refused(g, TUTTI_CORRUPT, "parameter 'parameter_1': has the index of 'parameter'");
}

TUTTI_TEST(shardings_that_name_an_axis_twice_are_found_out)
{
    tutti_axis_shard shards[TUTTI_GRAPH_MAX_AXES + 1] = {{"a", TUTTI_SPLIT, 0},
                                                         {"a", TUTTI_PARTIAL, 0}};
    tutti_sharding sharding = {2, shards};
    const tutti_sharding *all[] = {&sharding};
    tutti_graph *g = new_graph();
    void *data = NULL;
    size_t size = 0;
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, 2);
    x.node->shardings = all;
    sharding.count = TUTTI_GRAPH_MAX_AXES + 1;
    CHECK_STATUS(tutti_graph_serialize(g, &data, &size), TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "more than 64 mesh axes");
    sharding.count = 2;
    refused(g, TUTTI_CORRUPT, "a sharding of placeholder 'x' names mesh axis 'a' twice");
}

TUTTI_TEST(lies_about_names_are_found_out)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, 2), y = tutti_neg(x);
    y.node->name = "x";
    refused(g, TUTTI_CORRUPT, "two nodes are named 'x'");
    g = new_graph();
    x = tutti_placeholder_named(g, "x", TUTTI_F32, 2);
    x.node->device = "/cpu:red";
    refused(g, TUTTI_CORRUPT, "/cpu:red");
    g = new_graph();
    x = tutti_placeholder_named(g, "x", TUTTI_F32, 2);
    x.node->name = "a\x1b[31m";
    refused(g, TUTTI_CORRUPT, "control character");
    g = new_graph();
    x = tutti_placeholder_named(g, "x", TUTTI_F32, 2);
    x.node->name = "";
    refused(g, TUTTI_CORRUPT, "has no name");
}

static tutti_status same(tutti_infer *node)
{
    return tutti_infer_same(node);
}

static tutti_status no_type(tutti_infer *node)
{
    node->outputs[0] = (tutti_type){.dtype = TUTTI_F32};
    return TUTTI_OK;
}

TUTTI_TEST(unknown_operators_are_named)
{
    static const tutti_op stranger = {.struct_size = sizeof(tutti_op),
                                      .name = "test.stranger",
                                      .version = 1,
                                      .min_inputs = 1,
                                      .max_inputs = 1,
                                      .outputs = 1,
                                      .infer = same};
    static tutti_op newer;
    newer = *tutti_op_find("neg");
    newer.version = 99;
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, 2);
    tutti__build(g, &stranger, NULL, 1, &x, 0, NULL);
    refused(g, TUTTI_NOT_FOUND, "there is no operator 'test.stranger@1' here; register");
    g = new_graph();
    x = tutti_placeholder_named(g, "x", TUTTI_F32, 2);
    tutti__build(g, &newer, NULL, 1, &x, 0, NULL);
    refused(g, TUTTI_NOT_FOUND, "'neg@99' here, only another version of it");
}

/* Bytes written by hand: "test.nest" takes a sub-graph and gives one scalar. */
static const tutti_attr_spec nest_attrs[] = {{"body", TUTTI_ATTR_GRAPH, NULL}, {0}};
static const tutti_op nest = {.struct_size = sizeof(tutti_op),
                              .name = "test.nest",
                              .version = 1,
                              .outputs = 1,
                              .flags = TUTTI_OP_CONTROL,
                              .attrs = nest_attrs,
                              .infer = no_type};

static void word(tutti_text *out, uint32_t value)
{
    tutti__text_bytes(out, &value, sizeof value);
}

static void words(tutti_text *out, int count, const uint32_t *values)
{
    for (int i = 0; i < count; i++)
        word(out, values[i]);
}

/* Header and strings: 0 "test.nest", 1 "n", 2 "", 3 "body". */
static tutti_text begin(void)
{
    static const char *const strings[] = {"test.nest", "n", "", "body"};
    tutti_text out = {0};
    tutti_op_register(&nest);
    tutti__text_bytes(&out, TUTTI_GRAPH_MAGIC, 8);
    words(&out, 6, (uint32_t[]){TUTTI_GRAPH_VERSION, 0, 0, 0, 0, 0});
    word(&out, 4);
    for (int i = 0; i < 4; i++) {
        word(&out, (uint32_t)strlen(strings[i]));
        tutti__text_bytes(&out, strings[i], strlen(strings[i]));
    }
    return out;
}

static tutti_status finish(tutti_text *out)
{
    tutti_graph *graph = NULL;
    seal((bytes){(unsigned char *)out->data, out->size});
    tutti_status status = tutti_graph_deserialize(out->data, out->size, &graph);
    tutti_graph_destroy(graph);
    tutti__text_free(out);
    return status;
}

/* A graph of one node that holds a graph, `depth` of them in all. */
static void put_nested(tutti_text *out, int depth)
{
    words(out, 2, (uint32_t[]){0, depth > 1});
    if (depth > 1) {
        words(out, 6, (uint32_t[]){0, 1, 1, 1, 2, 0});   /* who it is */
        words(out, 4, (uint32_t[]){1, TUTTI_F32, 0, 0}); /* one output, no inputs */
        words(out, 3, (uint32_t[]){1, 3, TUTTI_ATTR_GRAPH});
        put_nested(out, depth - 1);
        word(out, 0);
    }
    words(out, 2, (uint32_t[]){0, 0});
}

TUTTI_TEST(nesting_is_bounded)
{
    tutti_text out = begin();
    put_nested(&out, TUTTI_GRAPH_MAX_DEPTH);
    CHECK_OK(finish(&out));
    out = begin();
    put_nested(&out, TUTTI_GRAPH_MAX_DEPTH + 1);
    CHECK_STATUS(finish(&out), TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "nested 16 deep");
    tutti_graph *inner = new_graph();
    for (int depth = 1; depth <= TUTTI_GRAPH_MAX_DEPTH; depth++) {
        tutti_graph *outer = new_graph();
        tutti__build(outer, &nest, NULL, 0, NULL, 1, &TUTTI_GRAPH_ATTR("body", inner));
        tutti_graph_destroy(inner);
        inner = outer;
        if (depth < TUTTI_GRAPH_MAX_DEPTH)
            round_trip(inner);
    }
    void *data = NULL;
    size_t size = 0;
    CHECK_STATUS(tutti_graph_serialize(inner, &data, &size), TUTTI_TOO_LARGE);
    CHECK_STATUS(tutti_graph_verify(inner), TUTTI_TOO_LARGE);
    tutti_graph_destroy(inner);
}

TUTTI_TEST(counts_are_bounded_by_what_is_there)
{
    tutti_text out = begin();
    words(&out, 2, (uint32_t[]){0, 0xffffffff});
    CHECK_STATUS(finish(&out), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(),
                   "4294967295 nodes are announced, but only 0 bytes are left");
    out = begin();
    words(&out, 2, (uint32_t[]){0, TUTTI_GRAPH_MAX_NODES + 1});
    void *zeros = calloc(TUTTI_GRAPH_MAX_NODES + 1, 44);
    tutti__text_bytes(&out, zeros, 44 * (size_t)(TUTTI_GRAPH_MAX_NODES + 1));
    free(zeros);
    CHECK_STATUS(finish(&out), TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "more than 1000000 nodes");
    out = begin();
    words(&out, 2, (uint32_t[]){4, 0});
    CHECK_STATUS(finish(&out), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "flags");
    out = begin();
    words(&out, 5, (uint32_t[]){0, 0, 0, 0, 77});
    CHECK_STATUS(finish(&out), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "4 bytes are left over");
}

TUTTI_TEST(a_later_version_is_told_from_damage)
{
    tutti_graph *g = new_graph(), *copy = NULL;
    bytes b = written(g);
    b.data[8] = 2;
    seal(b);
    CHECK_STATUS(tutti_graph_deserialize(b.data, b.size, &copy), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "version 2, this library reads version 1");
    free(b.data);
    tutti_graph_destroy(g);
}
