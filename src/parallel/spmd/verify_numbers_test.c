/* verify_numbers_test.c: what the types of a text cannot see. The ranks' graphs are run in f64 by
 * reference kernels, side by side, and compared with one device: right texts agree, a sum that is
 * moved to where types allow it gives the same, a wrong factor is found. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/comm/comm.h"
#include "ops/reference.h"
#include "parallel/spmd/verify_networks_test.h"

/* A run of the specialized graph of all ranks. */
typedef struct machine {
    const trial *t;
    tutti_graph *graph;
    tutti_tensor ***values; /* by node id, then output; NULL: not yet */
    bool *done;
} machine;

static double number(const char *name, int64_t i)
{
    return 0.4 * sin(1.7 * (double)(i + 1) + (double)(tutti__hash_string(0, name) % 97));
}

static tutti_tensor *value_of(const machine *m, tutti_edge edge)
{
    return m->values[edge.node->id] ? m->values[edge.node->id][edge.index] : NULL;
}

static void set(machine *m, const tutti_node *node, int output, tutti_tensor *value)
{
    if (!m->values[node->id])
        m->values[node->id] = calloc((size_t)node->output_count + 1, sizeof **m->values);
    m->values[node->id][output] = value;
}

/* The element of the whole that element i of a rank's block is. */
static int64_t place_of(const tutti_node *variable, const tutti_tensor *block, int64_t i)
{
    const int64_t *whole, *start, *dims = tutti_tensor_dims(block);
    int rank = tutti_attr_ints(variable->attrs, variable->attr_count, "global_dims", &whole);
    int64_t at = 0, scale = 1;
    if (rank == 0)
        return i;
    (void)tutti_attr_ints(variable->attrs, variable->attr_count, "start", &start);
    for (int d = rank; d-- > 0; i /= dims[d]) {
        at += (start[d] + i % dims[d]) * scale;
        scale *= whole[d];
    }
    return at;
}

static bool begin_leaf(machine *m, const tutti_node *node)
{
    const char *name = node->origin;
    tutti_tensor *made;
    if (!tutti__is(node, "parameter") && !tutti__is(node, "variable"))
        return false;
    CHECK_OK(
        tutti_tensor_create(node->types[0].dtype, node->types[0].rank, node->types[0].dims, &made));
    for (int64_t i = 0; i < tutti_tensor_count(made); i++)
        tutti_tensor_set(made, i,
                         node->types[0].dtype == TUTTI_I32 ? (double)(i * 3 % CLASSES)
                         : tutti__is(node, "variable")     ? number(name, place_of(node, made, i))
                                                           : number("x", i));
    set(m, node, 0, made);
    return true;
}

static bool is_ready(const machine *m, const tutti_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (!value_of(m, node->inputs[i]))
            return false;
    for (int i = 0; i < node->control_count; i++)
        if (!m->done[node->controls[i]->id])
            return false;
    return true;
}

/* ---- collectives ---- */

enum { RANKS = 4 };

/* The nodes that meet with this one, by rank along its axes; false: not all are ready. */
static bool meet(const machine *m, const tutti_node *node, const tutti_node *ret[RANKS])
{
    const tutti_specialized *own = node->scratch;
    int size, first, rank, other;
    const char *axes = tutti__str(node, "axis");
    CHECK(tutti__mesh_axes_rank(m->t->mesh, own->local, axes, &rank, &size, &first));
    int found = 0;
    for (size_t n = 0; n < m->graph->nodes.count; n++) {
        const tutti_node *peer = m->graph->nodes.data[n];
        const tutti_specialized *its = peer->scratch;
        if (!its || its->text != own->text)
            continue;
        CHECK(tutti__mesh_axes_rank(m->t->mesh, its->local, axes, &rank, &size, &other));
        if (other != first)
            continue;
        if (!is_ready(m, peer))
            return false;
        ret[rank] = peer;
        found++;
    }
    CHECK_INT(found, size);
    return true;
}

static double reduced(const machine *m, const tutti_node *const *peers, int size, int output,
                      int64_t i)
{
    double all = tutti_tensor_get(value_of(m, peers[0]->inputs[output]), i);
    bool max = strcmp(tutti__str(peers[0], "op"), "max") == 0;
    for (int r = 1; r < size; r++) {
        double one = tutti_tensor_get(value_of(m, peers[r]->inputs[output]), i);
        all = !max ? all + one : one > all ? one : all;
    }
    return all;
}

static void reduce(machine *m, const tutti_node *const *peers, int size)
{
    for (int o = 0; o < peers[0]->output_count; o++)
        for (int r = 0; r < size; r++) {
            tutti_tensor *made, *like = value_of(m, peers[r]->inputs[o]);
            CHECK_OK(tutti_tensor_create(tutti_tensor_dtype(like), tutti_tensor_rank(like),
                                         tutti_tensor_dims(like), &made));
            for (int64_t i = 0; i < tutti_tensor_count(made); i++)
                tutti_tensor_set(made, i, reduced(m, peers, size, o, i));
            set(m, peers[r], o, made);
        }
}

static tutti_tensor *joined(const machine *m, const tutti_node *const *peers, int size, int dim)
{
    tutti_tensor *first = value_of(m, peers[0]->inputs[0]), *made;
    int64_t dims[TUTTI_MAX_RANK], at = 0, outer = 1, inner = 1;
    int rank = tutti_tensor_rank(first);
    memcpy(dims, tutti_tensor_dims(first), (size_t)rank * sizeof *dims);
    dims[dim] = 0;
    for (int r = 0; r < size; r++)
        dims[dim] += tutti_tensor_dims(value_of(m, peers[r]->inputs[0]))[dim];
    CHECK_OK(tutti_tensor_create(tutti_tensor_dtype(first), rank, dims, &made));
    for (int d = 0; d < rank; d++) {
        outer *= d < dim ? dims[d] : 1;
        inner *= d > dim ? dims[d] : 1;
    }
    for (int r = 0; r < size; r++) {
        tutti_tensor *block = value_of(m, peers[r]->inputs[0]);
        int64_t length = tutti_tensor_dims(block)[dim];
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < length * inner; i++)
                tutti_tensor_set(made, (o * dims[dim] + at) * inner + i,
                                 tutti_tensor_get(block, o * length * inner + i));
        at += length;
    }
    return made;
}

static void run_collective(machine *m, const tutti_node *const *peers)
{
    const tutti_node *node = peers[0];
    int size = (int)tutti__int(node, "size"), dim;
    if (strncmp(node->op->name, "all_reduce", 10) == 0) {
        reduce(m, peers, size);
        return;
    }
    bool scatters = tutti__is(node, "reduce_scatter"), exchanges = tutti__is(node, "all_to_all");
    dim = (int)tutti__int(node, exchanges ? "concat_dim" : "dim");
    if (scatters)
        reduce(m, peers, size);
    for (int r = 0; r < size; r++) {
        tutti_tensor *all = scatters ? m->values[peers[r]->id][0] : joined(m, peers, size, dim);
        tutti_tensor *part = all, *block;
        if (scatters || exchanges) {
            int d = exchanges ? (int)tutti__int(node, "split_dim") : dim;
            int64_t n = tutti_tensor_dims(all)[d] / size;
            CHECK_OK(tutti_tensor_slice(all, d, n * r, n, 1, &block));
            CHECK_OK(tutti_tensor_cast(block, tutti_tensor_dtype(all), &part));
            tutti_tensor_release(block);
            tutti_tensor_release(all);
        }
        set(m, peers[r], 0, part);
    }
}

/* ---- a step ---- */

static bool advance(machine *m, const tutti_node *node)
{
    const tutti_node *peers[RANKS];
    if (m->done[node->id] || !is_ready(m, node))
        return false;
    if (node->op->flags & TUTTI_OP_COLLECTIVE) {
        if (!meet(m, node, peers))
            return false;
        run_collective(m, peers);
        for (int r = 0; r < (int)tutti__int(node, "size"); r++)
            m->done[peers[r]->id] = true;
        return true;
    }
    m->done[node->id] = true;
    if (begin_leaf(m, node) || node->output_count == 0)
        return true;
    tutti_tensor *inputs[TUTTI_SPLIT_SLOTS], *outputs[TUTTI_SPLIT_SLOTS];
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = value_of(m, node->inputs[i]);
    CHECK_OK(tutti__reference_node(node, inputs, outputs));
    for (int i = 0; i < node->output_count; i++)
        set(m, node, i, outputs[i]);
    return true;
}

static machine run(trial *t)
{
    machine m = {.t = t};
    CHECK_OK(tutti__spmd_specialize(t->text, &t->spmd, &t->scratch, &m.graph));
    m.values = calloc(m.graph->nodes.count + 1, sizeof *m.values);
    m.done = calloc(m.graph->nodes.count + 1, sizeof *m.done);
    CHECK(m.values && m.done);
    for (bool any = true; any;) {
        any = false;
        for (size_t n = 0; n < m.graph->nodes.count; n++)
            any = advance(&m, m.graph->nodes.data[n]) || any;
    }
    for (size_t n = 0; n < m.graph->nodes.count; n++)
        CHECK(m.done[n]);
    return m;
}

static void end(machine *m)
{
    for (size_t n = 0; n < m->graph->nodes.count; n++) {
        for (int i = 0; m->values[n] && i < m->graph->nodes.data[n]->output_count; i++)
            tutti_tensor_release(m->values[n][i]);
        free(m->values[n]);
    }
    free(m->values);
    free(m->done);
    tutti_graph_destroy(m->graph);
}

/* The largest distance of the loss and of all variables after the step, of all ranks. */
static double distance(const machine *one, const machine *many)
{
    double most = fabs(tutti_tensor_get(value_of(one, one->graph->results.data[0]), 0) -
                       tutti_tensor_get(value_of(many, many->graph->results.data[0]), 0));
    for (size_t n = 0; n < many->graph->nodes.count; n++) {
        const tutti_node *node = many->graph->nodes.data[n], *same = NULL;
        if (!tutti__is(node, "variable"))
            continue;
        for (size_t k = 0; k < one->graph->nodes.count; k++)
            if (tutti__is(one->graph->nodes.data[k], "variable") &&
                strcmp(one->graph->nodes.data[k]->origin, node->origin) == 0)
                same = one->graph->nodes.data[k];
        CHECK(same);
        tutti_tensor *block = value_of(many, (tutti_edge){(tutti_node *)(uintptr_t)node, 0}),
                     *whole = value_of(one, (tutti_edge){(tutti_node *)(uintptr_t)same, 0});
        for (int64_t i = 0; i < tutti_tensor_count(block); i++) {
            double far = fabs(tutti_tensor_get(block, i) -
                              tutti_tensor_get(whole, place_of(node, block, i)));
            most = !(far <= most) ? far : most;
        }
    }
    return most;
}

/* Behind an all-reduce of one value, a factor that types do not see. */
static bool scale(trial *t)
{
    for (size_t n = 0; n < t->text->nodes.count; n++) {
        tutti_node *node = t->text->nodes.data[n], *twice;
        if (!(node->op->flags & TUTTI_OP_COLLECTIVE))
            continue;
        tutti_edge out = {node, 0}, both[] = {out, out};
        CHECK_OK(tutti__node_add(t->text, tutti_op_find("add"), "twice", 2, both, 0, NULL, &twice));
        tutti__graph_replace(t->text, out, (tutti_edge){twice, 0});
        twice->inputs[0] = twice->inputs[1] = out;
        twice->device = "";
        CHECK_OK(tutti__graph_sort(t->text));
        return true;
    }
    return false;
}

static void compare(void (*build)(network *n), const char *mesh, const char *layout)
{
    trial alone, t;
    begin_on(build, "data=1", "batch:data", 1, &alone);
    machine one = run(&alone);
    begin(build, mesh, layout, &t);
    machine many = run(&t);
    CHECK(distance(&one, &many) < 1e-12);
    end(&many);
    CHECK(scale(&t));
    many = run(&t);
    CHECK(distance(&one, &many) > 1e-6);
    end(&many);
    finish(&t);
    int moved = 0;
    for (int c = 0;; c++) {
        begin(build, mesh, layout, &t);
        tutti_node *node = collective(t.text, c);
        bool more = node != NULL;
        if (more && mutate(t.text, node, MOVE, c % node->output_count)) {
            CHECK_OK(tutti__graph_sort(t.text));
            if (tutti__spmd_verify(t.text, &t.spmd) == TUTTI_OK) {
                many = run(&t);
                CHECK(distance(&one, &many) < 1e-12);
                end(&many);
                moved++;
            }
        }
        finish(&t);
        if (!more)
            break;
    }
    TUTTI_UNUSED(moved);
    end(&one);
    finish(&alone);
}

TUTTI_TEST(texts_agree_with_one_device_in_f64_and_wrong_factors_are_found)
{
    static void (*const builds[])(network *) = {dense, convolution, transformer};
    for (int i = 0; i < 3; i++) {
        compare(builds[i], "batch=4", "batch:batch");
        compare(builds[i], "data=2,model=2", "batch:data;hidden:model");
    }
}
