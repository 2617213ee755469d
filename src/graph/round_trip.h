/* round_trip.h: for the tests of serialisation: a graph of everything, written and read back. */
#ifndef TUTTI_GRAPH_ROUND_TRIP_H
#define TUTTI_GRAPH_ROUND_TRIP_H

#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "graph/serialize.h"
#include "tutti/ops.h"

static inline tutti_graph *new_graph(void)
{
    tutti_graph *graph = NULL;
    CHECK_OK(tutti_graph_create(&graph));
    return graph;
}

typedef struct bytes {
    unsigned char *data;
    size_t size;
} bytes;

static inline bytes written(const tutti_graph *graph)
{
    bytes b = {0};
    CHECK_OK(tutti_graph_serialize(graph, (void **)&b.data, &b.size));
    return b;
}

static inline tutti_graph *read_back(bytes b)
{
    tutti_graph *graph = NULL;
    CHECK_OK(tutti_graph_deserialize(b.data, b.size, &graph));
    return graph;
}

static inline void same_node(const tutti_node *a, const tutti_node *b)
{
    CHECK(a->op == b->op);
    CHECK_STR(a->name, b->name);
    CHECK_STR(a->origin, b->origin);
    CHECK_STR(a->device, b->device);
    CHECK_INT(a->id, b->id);
    CHECK(!a->colocate == !b->colocate);
    if (a->colocate)
        CHECK_INT(a->colocate->id, b->colocate->id);
    for (int i = 0; i < a->attr_count; i++)
        CHECK(tutti__attr_equal(&a->attrs[i], &b->attrs[i]));
    CHECK(b->file == NULL); /* paths never travel */
}

/* Writes, reads, and writes again; the graph is given back as it was. */
static inline void round_trip(const tutti_graph *graph)
{
    bytes first = written(graph);
    tutti_graph *copy = read_back(first);
    bytes second = written(copy);
    CHECK_OK(tutti_graph_verify(copy));
    CHECK(tutti__graph_same(copy, graph));
    CHECK_INT(tutti__graph_hash(copy), tutti__graph_hash(graph));
    CHECK_INT(copy->nodes.count, graph->nodes.count);
    CHECK_INT(copy->trace, graph->trace);
    for (size_t i = 0; i < graph->nodes.count; i++)
        same_node(graph->nodes.data[i], copy->nodes.data[i]);
    CHECK_INT(second.size, first.size);
    CHECK(memcmp(first.data, second.data, first.size) == 0);
    tutti_graph_destroy(copy);
    free(first.data);
    free(second.data);
}

static inline tutti_sym constant(tutti_graph *g, tutti_tensor *tensor)
{
    tutti_sym sym = tutti_constant(g, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

static inline void add_tensors(tutti_graph *g)
{
    tutti_tensor *base = NULL, *view = NULL, *text = NULL, *flags = NULL, *empty = NULL;
    CHECK_OK(
        tutti_tensor_from(TUTTI_F16, 2, (int64_t[]){2, 3}, (uint16_t[]){1, 2, 3, 4, 5, 6}, &base));
    CHECK_OK(tutti_tensor_permute(base, (int[]){1, 0}, &view));
    tutti_tensor_release(base);
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 1, (int64_t[]){3},
                               (tutti_string[]){{"a\0b", 3}, {"", 0}, {"third", 5}}, &text));
    CHECK_OK(tutti_tensor_from(TUTTI_BOOL, 1, (int64_t[]){2}, (bool[]){true, false}, &flags));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 3, (int64_t[]){4, 0, 2}, &empty));
    constant(g, view);
    constant(g, text);
    constant(g, flags);
    constant(g, empty);
}

static inline void below(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                         void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_less(args[0], tutti_scalar(body, TUTTI_F32, 10));
}

static inline void negated(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                           void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_neg(args[0]);
}

/* A branch inside a loop. */
static inline void step(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                        void *context)
{
    TUTTI_UNUSED(count);
    tutti_sym pred = tutti_less(args[0], tutti_scalar(body, TUTTI_F32, 0));
    ret[0] = tutti_cond(pred, negated, negated, context, 1, args, 1, NULL);
}

static inline tutti_graph *rich_graph(void)
{
    static const tutti_axis_shard shards[] = {{"data", TUTTI_SPLIT, 1},
                                              {"model", TUTTI_PARTIAL, 0}};
    static const tutti_sharding sharding = {2, shards};
    static const tutti_sharding *all[] = {&sharding};
    tutti_graph *g = new_graph();
    add_tensors(g);
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, TUTTI_ANY, 3), y = TUTTI_NO_SYM,
              u = TUTTI_NO_SYM;
    tutti_sym v = tutti_variable(g, tutti_zeros(2, 3), .name = "v");
    TUTTI_WITH_DEVICE(g, "/job:ps/task:1/far:0")
        TUTTI_WITH_NAME(g, "net")
            y = tutti_add(x, v);
    TUTTI_WITH_COLOCATION(g, y)
        TUTTI_WITH_CONTROL(g, x, y)
            u = tutti_assign_sub(v, y);
    tutti_sym start = tutti_scalar(g, TUTTI_F32, 1);
    tutti_while(below, step, NULL, 1, &start, 0, NULL, NULL);
    y.node->shardings = all;
    y.node->origin = "before rewrites";
    CHECK_OK(tutti__graph_result(g, tutti__edge(y)));
    CHECK(TUTTI_VEC_PUSH(&g->targets, u.node));
    CHECK_OK(tutti_graph_check(g));
    return g;
}

/* Makes size and checksum right again, as an attacker would. */
static inline void seal(bytes b)
{
    uint64_t payload = b.size - TUTTI_GRAPH_HEADER, checksum;
    memcpy(b.data + 16, &payload, 8);
    checksum = tutti__graph_checksum(b.data, b.size);
    memcpy(b.data + TUTTI_GRAPH_CHECKSUM, &checksum, 8);
}

#endif
