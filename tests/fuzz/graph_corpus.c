/* graph_corpus.c: writes the corpus of graph_fuzz: small graphs, serialised.
 *
 *     build-fuzz/tests/fuzz/graph_corpus tests/fuzz/corpus/graph_fuzz */
#include <stdio.h>
#include <stdlib.h>

#include "graph/graph.h"
#include "tutti/ops.h"

static void constant(tutti_graph *g, tutti_dtype dtype, int rank, const int64_t *dims,
                     const void *data)
{
    tutti_tensor *tensor = NULL;
    if (tutti_tensor_from(dtype, rank, dims, data, &tensor) == TUTTI_OK)
        tutti_constant(g, tensor);
    tutti_tensor_release(tensor);
}

static void empty(tutti_graph *g)
{
    g->trace = true;
}

static void tensors(tutti_graph *g)
{
    constant(g, TUTTI_F32, 0, NULL, (float[]){1.5F});
    constant(g, TUTTI_BF16, 2, (int64_t[]){1, 2}, (uint16_t[]){1, 2});
    constant(g, TUTTI_BOOL, 1, (int64_t[]){2}, (bool[]){true, false});
    constant(g, TUTTI_I64, 2, (int64_t[]){3, 0}, NULL);
    constant(g, TUTTI_STRING, 1, (int64_t[]){2}, (tutti_string[]){{"a\0b", 3}, {"", 0}});
}

static void layer(tutti_graph *g)
{
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, TUTTI_ANY, 3);
    TUTTI_WITH_NAME(g, "dense")
        TUTTI_WITH_DEVICE(g, "/job:worker/task:1/cpu:0") {
            tutti_sym w = tutti_variable(g, tutti_zeros(3, 2), .name = "w");
            tutti_sym y = tutti_relu(
                tutti_apply_op(g, "matmul", 2, ((tutti_sym[]){x, tutti_read(w)}), 0, NULL));
            if (y.node)
                tutti__graph_result(g, tutti__edge(y));
        }
}

static void order(tutti_graph *g)
{
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, 2), y = tutti_neg(x), z = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(g, x, y)
        TUTTI_WITH_COLOCATION(g, y)
            z = tutti_exp(x);
    y.node->colocate = z.node;
    z.node->colocate = NULL;
    if (!TUTTI_VEC_PUSH(&g->targets, z.node))
        exit(1);
}

static void shards(tutti_graph *g)
{
    static const tutti_axis_shard list[] = {{"data", TUTTI_SPLIT, 0}, {"model", TUTTI_PARTIAL, 0}};
    static const tutti_sharding sharding = {2, list};
    static const tutti_sharding *all[] = {&sharding};
    tutti_placeholder_named(g, "x", TUTTI_F32, 4, 2).node->shardings = all;
}

static void queue(tutti_graph *g)
{
    tutti_sym q = tutti_fifo_queue(g, 4, TUTTI_TYPE(TUTTI_F32, 2), TUTTI_TYPE(TUTTI_I64));
    tutti_neg(tutti_dequeue(q));
}

static void negated(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                    void *context)
{
    (void)body, (void)count, (void)context;
    ret[0] = tutti_neg(args[0]);
}

static void branch(tutti_graph *g)
{
    tutti_sym pred = tutti_placeholder_named(g, "pred", TUTTI_BOOL);
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, TUTTI_ANY);
    tutti_cond(pred, negated, negated, NULL, 1, &x, 1, NULL);
}

static void below(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    (void)count, (void)context;
    ret[0] = tutti_less(args[0], tutti_scalar(body, TUTTI_F32, 10));
}

static void loop(tutti_graph *g)
{
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32);
    tutti_while(below, negated, NULL, 1, &x, 0, NULL, NULL);
}

static const struct {
    const char *name;
    void (*build)(tutti_graph *graph);
} graphs[] = {{"empty", empty},   {"tensors", tensors}, {"layer", layer},   {"order", order},
              {"shards", shards}, {"queue", queue},     {"branch", branch}, {"loop", loop}};

static int write_graph(const char *folder, size_t i)
{
    char path[512];
    void *data = NULL;
    size_t size = 0, done = 0;
    tutti_graph *graph = NULL;
    tutti_status status = tutti_graph_create(&graph);
    if (status == TUTTI_OK) {
        graphs[i].build(graph);
        status = tutti_graph_serialize(graph, &data, &size);
    }
    snprintf(path, sizeof path, "%s/%s", folder, graphs[i].name);
    FILE *file = status == TUTTI_OK ? fopen(path, "wb") : NULL;
    if (file) {
        done = fwrite(data, 1, size, file);
        done = fclose(file) == 0 ? done : 0;
    }
    if (status != TUTTI_OK || done != size)
        fprintf(stderr, "%s: %s\n", path,
                status == TUTTI_OK ? "cannot be written" : tutti_error_message());
    free(data);
    tutti_graph_destroy(graph);
    return status != TUTTI_OK || done != size;
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: graph_corpus FOLDER\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
        failed |= write_graph(argv[1], i);
    return failed;
}
