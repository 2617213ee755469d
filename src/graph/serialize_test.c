#include "graph/round_trip.h"

#include "ops/sample.h"
#include "tables/op.h"

TUTTI_TEST(a_graph_of_everything_makes_the_round_trip)
{
    tutti_graph *g = rich_graph();
    round_trip(g);
    g->trace = true;
    round_trip(g);
    bytes b = written(g);
    tutti_graph *copy = read_back(b);
    const tutti_node *y = copy->results.data[0].node;
    CHECK_STR(y->name, "net/add");
    CHECK_STR(y->shardings[0]->shards[0].axis, "data");
    CHECK_INT(y->shardings[0]->shards[0].dimension, 1);
    CHECK_INT(y->shardings[0]->shards[1].kind, TUTTI_PARTIAL);
    CHECK_STR(copy->targets.data[0]->op->name, "assign_sub");
    CHECK(copy->targets.data[0]->colocate == y);
    CHECK_INT(copy->targets.data[0]->control_count, 2);
    CHECK(tutti_graph_find(copy, "v") != NULL);
    free(b.data);
    tutti_graph_destroy(copy);
    tutti_graph_destroy(g);
}

TUTTI_TEST(an_empty_graph_makes_the_round_trip)
{
    tutti_graph *g = new_graph();
    round_trip(g);
    tutti_graph_destroy(g);
}

TUTTI_TEST(every_sample_makes_the_round_trip)
{
    int count = 0;
    for (const tutti_op *const *op = tutti__op_table; *op; op++)
        for (const char *const *text = (*op)->samples; text && *text; text++, count++) {
            tutti_sample *sample = NULL;
            CHECK_OK(tutti__sample_parse(*op, *text, 1, &sample));
            CHECK_OK(tutti_graph_verify(sample->graph));
            round_trip(sample->graph);
            tutti__sample_free(sample);
        }
    CHECK(count > 100);
}

/* A graph that was read can be built on. */
TUTTI_TEST(a_graph_that_was_read_can_grow)
{
    tutti_graph *g = rich_graph();
    bytes b = written(g);
    tutti_graph *copy = read_back(b);
    tutti_sym x = tutti__sym(tutti_graph_find(copy, "x"), 0), y = tutti_neg(x),
              again = tutti_placeholder_named(copy, "x", TUTTI_F32);
    CHECK_OK(tutti_graph_check(copy));
    CHECK_STR(tutti_node_name(again.node), "x_1");
    CHECK(tutti_sym_ok(y));
    CHECK_OK(tutti_graph_verify(copy));
    free(b.data);
    tutti_graph_destroy(copy);
    tutti_graph_destroy(g);
}

/* Specialisation tells a body's parameters more than their attributes do. */
TUTTI_TEST(what_parameters_learnt_travels)
{
    tutti_graph *g = new_graph();
    tutti_type type = tutti_type_make(TUTTI_F32, 2, (int64_t[]){TUTTI_ANY, 3});
    tutti_sym p = tutti_parameter(g, 0, type), y = tutti_neg(p);
    p.node->types[0].dims[0] = y.node->types[0].dims[0] = 5;
    round_trip(g);
    p.node->types[0].dims[0] = TUTTI_ANY;
    bytes b = written(g);
    tutti_graph *copy = NULL;
    CHECK_STATUS(tutti_graph_deserialize(b.data, b.size, &copy), TUTTI_CORRUPT); /* only they may */
    free(b.data);
    p.node->types[0].dims[0] = y.node->types[0].dims[0] = INT64_MAX / 2;
    b = written(g);
    CHECK_STATUS(tutti_graph_deserialize(b.data, b.size, &copy), TUTTI_CORRUPT);
    free(b.data);
    tutti_graph_destroy(g);
}

TUTTI_TEST(dead_nodes_do_not_travel)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32), gone = tutti_neg(x), y = tutti_exp(x);
    CHECK_OK(tutti__node_after(y.node, gone.node));
    y.node->colocate = x.node;
    gone.node->dead = true;
    bytes b = written(g);
    tutti_graph *copy = read_back(b);
    CHECK_INT(copy->nodes.count, 2);
    CHECK_INT(copy->nodes.data[1]->control_count, 0);
    CHECK(copy->nodes.data[1]->colocate == copy->nodes.data[0]);
    tutti_graph_destroy(copy);
    free(b.data);
    tutti_neg(y);
    y.node->dead = true;
    void *data = NULL;
    size_t size = 0;
    CHECK_STATUS(tutti_graph_serialize(g, &data, &size), TUTTI_INTERNAL);
    CHECK(data == NULL);
    tutti_graph_destroy(g);
}

TUTTI_TEST(a_mistaken_graph_is_not_written)
{
    tutti_graph *g = new_graph();
    void *data = NULL;
    size_t size = 0;
    tutti_apply_op(g, "no such operator", 0, NULL, 0, NULL);
    CHECK_STATUS(tutti_graph_serialize(g, &data, &size), TUTTI_NOT_FOUND);
    CHECK_STATUS(tutti_graph_serialize(NULL, &data, &size), TUTTI_INVALID);
    CHECK(data == NULL && size == 0);
    tutti_graph_destroy(g);
}

/* Files of today must be read tomorrow: these numbers are a promise. */
TUTTI_TEST(the_form_stays_as_it_is)
{
    tutti_graph *g = new_graph();
    tutti_placeholder_named(g, "x", TUTTI_F32, TUTTI_ANY, 2);
    bytes b = written(g);
    static const unsigned char expected[] = {'t', 'u', 't', 't', 'i', 'g', 'r', '\n',
                                             1,   0,   0,   0,   0,   0,   0,   0};
    CHECK(b.size > sizeof expected && memcmp(b.data, expected, sizeof expected) == 0);
    CHECK_INT(b.size, 201);
    CHECK_INT(tutti__hash_bytes(0, b.data, b.size), INT64_C(1457102372392508338));
    free(b.data);
    tutti_graph_destroy(g);
}
