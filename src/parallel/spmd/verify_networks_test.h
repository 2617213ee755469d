/* verify_networks_test.h: steps of a dense, a convolutional and a transformer network over meshes,
 * for tests of their texts. */
#ifndef TUTTI_PARALLEL_SPMD_VERIFY_NETWORKS_TEST_H
#define TUTTI_PARALLEL_SPMD_VERIFY_NETWORKS_TEST_H

#include <string.h>

#include "base/test.h"
#include "parallel/spmd/rewrite.h"
#include "passes/pass.h"
#include "tutti/tutti.h"

enum { MOST = 12, BATCH = 8, CLASSES = 4 };

typedef struct network {
    tutti_graph *graph;
    tutti_sym x, y, logits, weights[MOST];
    int count;
} network;

static inline tutti_sym weight(network *n, tutti_init init)
{
    return n->weights[n->count++] = tutti_variable(n->graph, init, .dtype = TUTTI_F64);
}

static inline void dense(network *n)
{
    n->x = tutti_split_batch(tutti_placeholder(n->graph, TUTTI_F64, BATCH, 6));
    tutti_sym h = tutti_matmul(n->x, tutti_sharded(weight(n, tutti_full(0.1, 6, 8)), "-,hidden"));
    h = tutti_relu(tutti_add(h, weight(n, tutti_full(0.1, 8))));
    n->logits = tutti_matmul(h, weight(n, tutti_full(0.1, 8, CLASSES)));
}

static inline void convolution(network *n)
{
    n->x = tutti_split_batch(tutti_placeholder(n->graph, TUTTI_F64, BATCH, 8, 8, 2));
    tutti_sym kernel = tutti_sharded(weight(n, tutti_full(0.1, 3, 3, 2, 4)), "-,-,-,hidden");
    tutti_sym h = tutti_relu(tutti_nn_conv2d(n->x, kernel));
    h = tutti_nn_max_pool2d(h);
    h = tutti_reshape(h, BATCH, 36);
    n->logits = tutti_matmul(h, weight(n, tutti_full(0.1, 36, CLASSES)));
}

static inline tutti_sym heads(tutti_sym x)
{
    return tutti_transpose(tutti_reshape(x, BATCH, 5, 2, 4), 0, 2, 1, 3);
}

static inline void transformer(network *n)
{
    n->x = tutti_split_batch(tutti_placeholder(n->graph, TUTTI_F64, BATCH, 5, 8));
    tutti_sym h =
        tutti_nn_layer_norm(n->x, weight(n, tutti_full(1.0, 8)), weight(n, tutti_full(0.0, 8)));
    tutti_sym q = tutti_matmul(h, tutti_sharded(weight(n, tutti_full(0.1, 8, 8)), "-,hidden"));
    tutti_sym k = tutti_matmul(h, tutti_sharded(weight(n, tutti_full(0.2, 8, 8)), "-,hidden"));
    tutti_sym v = tutti_matmul(h, tutti_sharded(weight(n, tutti_full(0.3, 8, 8)), "-,hidden"));
    tutti_sym a = tutti_nn_attention(heads(q), heads(k), heads(v));
    a = tutti_reshape(tutti_transpose(a, 0, 2, 1, 3), BATCH, 5, 8);
    h = tutti_add(n->x, tutti_matmul(a, weight(n, tutti_full(0.1, 8, 8))));
    n->logits =
        tutti_matmul(tutti_mean(h, .axes = TUTTI_AXES(1)), weight(n, tutti_full(0.1, 8, CLASSES)));
}

/* The job of a step: forward, gradients, updates; its loss is fetched. */
static inline tutti_graph *job_of(void (*build)(network *n))
{
    network n = {0};
    tutti_graph *job;
    CHECK_OK(tutti_graph_create(&n.graph));
    build(&n);
    n.y = tutti_split_batch(tutti_placeholder(n.graph, TUTTI_I32, BATCH));
    tutti_sym loss = tutti_mean(tutti_nn_sparse_cross_entropy(n.y, n.logits));
    tutti_grad grads[MOST];
    tutti_sym updates[MOST];
    tutti_gradients(loss, n.count, n.weights, grads);
    for (int i = 0; i < n.count; i++)
        updates[i] = tutti_assign_sub(n.weights[i], tutti_mul(grads[i].value, 0.1));
    tutti_sym step = (tutti_group)(n.graph, NULL, n.count, updates);
    CHECK_OK(tutti_graph_check(n.graph));
    tutti_edge feeds[] = {tutti__edge(n.x), tutti__edge(n.y)}, fetch = tutti__edge(loss);
    tutti_type types[] = {*tutti__edge_type(feeds[0]), *tutti__edge_type(feeds[1])};
    tutti_extract wanted = {.feed_count = 2,
                            .fetch_count = 1,
                            .target_count = 1,
                            .feeds = feeds,
                            .fetches = &fetch,
                            .feed_types = types,
                            .targets = &step.node};
    CHECK_OK(tutti__graph_extract(n.graph, &wanted, &job));
    CHECK_OK(tutti__specialize(job));
    CHECK_OK(tutti__passes_run(TUTTI_PASS_JOB, job, &(tutti_pass_context){0}, "job"));
    tutti_graph_destroy(n.graph);
    return job;
}

typedef struct trial {
    tutti_mesh *mesh;
    tutti_layout layout;
    tutti_spmd spmd;
    tutti_arena scratch;
    tutti_graph *job, *text;
} trial;

static const char *const devices[] = {"cpu:0", "cpu:1", "cpu:2", "cpu:3"};

static inline void begin_on(void (*build)(network *n), const char *mesh, const char *layout,
                            int ranks, trial *t)
{
    *t = (trial){.job = job_of(build)};
    CHECK_OK(tutti__mesh_create(mesh, ranks == 1 ? "cpu:0" : "cpu:0,cpu:1,cpu:2,cpu:3", &t->mesh));
    CHECK_OK(tutti__layout_parse(layout, t->mesh, &t->layout));
    t->spmd = (tutti_spmd){.layout = &t->layout,
                           .replicas = ranks,
                           .local = ranks,
                           .devices = devices,
                           .batch = BATCH,
                           .bucket_bytes = 1 << 20};
    CHECK_OK(tutti__spmd_text(t->job, &t->spmd, &t->scratch, &t->text));
}

static inline void begin(void (*build)(network *n), const char *mesh, const char *layout, trial *t)
{
    begin_on(build, mesh, layout, 4, t);
}

static inline void finish(trial *t)
{
    tutti_graph_destroy(t->text);
    tutti_graph_destroy(t->job);
    tutti__arena_free(&t->scratch);
    tutti__mesh_destroy(t->mesh);
}

static inline tutti_node *collective(const tutti_graph *graph, int number)
{
    for (size_t n = 0; n < graph->nodes.count; n++)
        if ((graph->nodes.data[n]->op->flags & TUTTI_OP_COLLECTIVE) && number-- == 0)
            return graph->nodes.data[n];
    return NULL;
}

enum { DROP, DOUBLE, MOVE, MUTATIONS };

/* False of a bucket's value that this replica makes for others only, and of what it is a part of on
 * its way through another bucket: nothing of it is lost here. */
static inline bool is_used(const tutti_graph *graph, tutti_edge edge)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        bool bucket = tutti__is(node, "all_reduce_many");
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i].node == edge.node && node->inputs[i].index == edge.index &&
                (!bucket || is_used(graph, (tutti_edge){node, (uint32_t)i})))
                return true;
    }
    for (size_t i = 0; i < graph->results.count; i++)
        if (graph->results.data[i].node == edge.node && graph->results.data[i].index == edge.index)
            return true;
    return false;
}

/* False: it cannot be done to this collective. */
static inline bool mutate(tutti_graph *graph, tutti_node *node, int how, int output)
{
    tutti_edge out = {node, (uint32_t)output}, in = node->inputs[output];
    tutti_node *user = NULL, *more;
    tutti_attr attrs[] = {TUTTI_STR("axis", tutti__str(node, "axis")),
                          TUTTI_INT("size", tutti__int(node, "size")),
                          TUTTI_STR("channel", "again")};
    if (node->output_count > 1 && !is_used(graph, out))
        return false;
    if (how == DROP) {
        if (!tutti_type_equal(tutti__edge_type(in), tutti__edge_type(out)))
            return false; /* shapes tell */
        tutti__graph_replace(graph, out, in);
        node->dead = node->output_count == 1;
        for (size_t i = 0; node->dead && i < graph->targets.count; i++)
            if (graph->targets.data[i] == node)
                graph->targets.data[i] = in.node;
        for (size_t n = 0; node->dead && n < graph->nodes.count; n++)
            for (int i = 0; i < graph->nodes.data[n]->control_count; i++)
                if (graph->nodes.data[n]->controls[i] == node)
                    graph->nodes.data[n]->controls[i] = in.node;
        return true;
    }
    if (how == DOUBLE) {
        CHECK_OK(
            tutti__node_add(graph, tutti_op_find("all_reduce"), "again", 1, &out, 3, attrs, &more));
        tutti__graph_replace(graph, out, (tutti_edge){more, 0});
        more->inputs[0] = out;
        more->device = node->device;
        return true;
    }
    /* Behind the only node that uses it, where that is of one shape. */
    for (size_t n = 0; n < graph->nodes.count; n++)
        for (int i = 0; i < graph->nodes.data[n]->input_count; i++)
            if (graph->nodes.data[n]->inputs[i].node == node &&
                graph->nodes.data[n]->inputs[i].index == (uint32_t)output)
                user = user ? node : graph->nodes.data[n];
    if (!user || user == node || user->output_count != 1 || !tutti__is(node, "all_reduce") ||
        !tutti_type_equal(&user->types[0], tutti__edge_type(out)))
        return false;
    CHECK_OK(tutti__node_add(graph, node->op, "moved", 1, &(tutti_edge){user, 0}, 3, attrs, &more));
    tutti__graph_replace(graph, (tutti_edge){user, 0}, (tutti_edge){more, 0});
    more->inputs[0] = (tutti_edge){user, 0};
    tutti__graph_replace(graph, out, in);
    return true;
}

#endif
