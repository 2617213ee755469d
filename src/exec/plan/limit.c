/* limit.c: which forward values are computed again so that a program stays within a limit.
 *
 * The forward pass is a row of units: calls of layers, in the order they run, or single nodes where
 * layers are too large. Cut into k segments
 * that keep about as many bytes each for the gradients, of which those are computed again that free
 * the most bytes for a FLOP, it takes the memory of what lies between segments and of one segment.
 * Either all of a segment is computed again, or what is cheap (element-wise work, norms), while
 * products and convolutions are kept. What a choice takes is what the device plans for it: each is
 * compiled. Of those within the limit the one with the fewest FLOPs is taken, and of its segments
 * as few as will do. */
#include "exec/plan/limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes/remat.h"

/* A node is cheap up to so many FLOPs for an element that it makes. */
#define CHEAP_FLOPS 32.0

enum { REFINED = 3 }; /* so many of the cheapest choices are tried with fewer segments */

typedef struct choice {
    int segments; /* 0: as the graph is marked */
    int taken;    /* so many of them, the best first */
    bool cheap;   /* only what is cheap in them */
    int copies;   /* found by trying: nodes that are computed again, */
    size_t bytes; /* what is planned, */
    double flops; /* and those of the copies */
} choice;

typedef struct limiter {
    tutti_device *device;
    tutti_partition partition; /* its graph: before anything is computed again */
    size_t limit;
    uint32_t regions; /* the largest number of one in the graph */
    double flops;     /* of the graph */
    bool fine;        /* units are nodes */
    int count;        /* of units */
    int *unit;        /* by node id; -1: none */
    double *kept;     /* by unit: bytes that gradients read */
    double *cost;     /* by unit: FLOPs */
    bool *seen;       /* by node id: counted in `kept` */
    int *segment;     /* by unit, of the present cut */
    int *order;       /* of segments: the best first */
    double *ratio;    /* by segment: bytes for a FLOP */
} limiter;

/* ---- units ---- */

static bool runs_forward(const tutti_node *node)
{
    return !node->backward && tutti__remat_may(node);
}

static double bytes_of(const tutti_node *node)
{
    double bytes = 0;
    for (int i = 0; !(node->op->flags & TUTTI_OP_VIEW) && i < node->output_count; i++)
        bytes += (double)tutti_type_count(&node->types[i]) *
                 (double)tutti_dtype_size(node->types[i].dtype);
    return bytes;
}

/* A new unit begins with a new region; nodes outside all of them belong to the one before. */
static void find_units(limiter *l)
{
    const tutti_graph *graph = l->partition.graph;
    uint32_t region = 0;
    l->count = 0;
    l->flops = 0;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        l->unit[n] = -1;
        l->regions = node->region > l->regions ? node->region : l->regions;
        double flops = tutti__node_flops(node);
        l->flops += flops;
        if (!runs_forward(node))
            continue;
        if (l->count == 0 || l->fine || (node->region != 0 && node->region != region))
            l->cost[l->count++] = 0;
        region = node->region != 0 ? node->region : region;
        l->unit[n] = l->count - 1;
        l->cost[l->count - 1] += flops;
    }
}

static void find_kept(limiter *l)
{
    const tutti_graph *graph = l->partition.graph;
    memset(l->seen, 0, graph->nodes.count * sizeof *l->seen);
    memset(l->kept, 0, graph->nodes.count * sizeof *l->kept);
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *reader = graph->nodes.data[n];
        for (int i = 0; reader->backward && i < reader->input_count; i++) {
            const tutti_node *node = reader->inputs[i].node;
            if (l->unit[node->id] >= 0 && !l->seen[node->id])
                l->kept[l->unit[node->id]] += bytes_of(node);
            l->seen[node->id] = true;
        }
    }
}

static tutti_status open_limiter(limiter *l)
{
    size_t count = l->partition.graph->nodes.count + 1;
    l->seen = calloc(count, sizeof *l->seen);
    l->unit = calloc(count, sizeof *l->unit);
    l->kept = calloc(count, sizeof *l->kept);
    l->cost = calloc(count, sizeof *l->cost);
    l->segment = calloc(count, sizeof *l->segment);
    l->order = calloc(count, sizeof *l->order);
    l->ratio = calloc(count, sizeof *l->ratio);
    bool ok = l->seen && l->unit && l->kept && l->cost && l->segment && l->order && l->ratio;
    return ok ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
}

static void close_limiter(limiter *l)
{
    free(l->seen);
    free(l->unit);
    free(l->kept);
    free(l->cost);
    free(l->segment);
    free(l->order);
    free(l->ratio);
}

/* ---- segments ---- */

/* The last one is computed again in vain: its gradients come at once. */
static void rank_segments(limiter *l, int segments)
{
    for (int s = 0; s < segments; s++) {
        int at = s;
        double ratio = s == segments - 1 ? -1 : l->ratio[s];
        for (; at > 0 && l->ratio[l->order[at - 1]] < ratio; at--)
            l->order[at] = l->order[at - 1];
        l->order[at] = s;
    }
}

/* Segments of units, with about the same bytes each. */
static void limit_cut(limiter *l, int segments)
{
    double all = 0, before = 0, bytes[65] = {0}, flops[65] = {0};
    for (int u = 0; u < l->count; u++)
        all += l->kept[u];
    for (int u = 0; u < l->count; u++) {
        double middle = before + l->kept[u] / 2;
        int s = all > 0 ? (int)(middle / all * segments) : 0;
        s = s < segments ? s : segments - 1;
        l->segment[u] = s;
        before += l->kept[u];
        bytes[s] += l->kept[u];
        flops[s] += l->cost[u];
    }
    for (int s = 0; s < segments; s++)
        l->ratio[s] = bytes[s] / (flops[s] + 1);
    rank_segments(l, segments);
}

static bool is_cheap(const tutti_node *node)
{
    double elements = 0;
    for (int i = 0; i < node->output_count; i++)
        elements += (double)tutti_type_count(&node->types[i]);
    return tutti__node_flops(node) <= CHEAP_FLOPS * elements;
}

/* Marks a copy of the graph, whose nodes stand as the graph's do. */
static void mark(const limiter *l, const choice *c, tutti_graph *graph)
{
    bool taken[65] = {false};
    for (int i = 0; i < c->taken; i++)
        taken[l->order[i]] = true;
    for (size_t n = 0; c->segments > 0 && n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        int unit = l->unit[n];
        if (unit < 0 || !taken[l->segment[unit]])
            continue;
        node->region = l->regions + 1 + (uint32_t)l->segment[unit];
        node->remat = !c->cheap || is_cheap(node) || (node->op->flags & TUTTI_OP_VIEW);
    }
}

/* ---- trying ---- */

/* Compiles one choice and finds what it takes; without `ret` it is only measured. */
static tutti_status try_choice(limiter *l, choice *c, tutti_executable **ret,
                               tutti_graph **ret_graph)
{
    tutti_graph *graph;
    tutti_executable *executable = NULL;
    TUTTI_TRY(tutti__graph_copy(l->partition.graph, &graph, NULL));
    if (c->segments > 0)
        limit_cut(l, c->segments);
    mark(l, c, graph);
    tutti_status status = tutti__remat(graph, &c->copies);
    if (status == TUTTI_OK) {
        tutti_partition partition = l->partition;
        partition.graph = graph;
        tutti__graph_flops(graph, &c->flops);
        status = l->device->target->compile(l->device, &partition, &executable);
    }
    if (status == TUTTI_OK)
        c->bytes = executable->table->memory ? executable->table->memory(executable) : 0;
    if (status == TUTTI_OK && ret) {
        *ret = executable;
        *ret_graph = graph;
        return TUTTI_OK;
    }
    if (executable)
        executable->table->destroy(executable);
    tutti_graph_destroy(graph);
    return status;
}

typedef struct search {
    choice tried[32]; /* with all segments but the last */
    int count;
    choice best;  /* within the limit, with the fewest FLOPs; segments 0: none */
    size_t least; /* bytes of any */
} search;

static void note_choice(const limiter *l, search *s, const choice *c)
{
    s->least = c->bytes < s->least ? c->bytes : s->least;
    if (c->bytes <= l->limit && (s->best.segments == 0 || c->flops < s->best.flops))
        s->best = *c;
}

static tutti_status try_cuts(limiter *l, search *s)
{
    s->count = 0;
    find_units(l);
    find_kept(l);
    static const int cuts[] = {2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64};
    for (size_t i = 0; i < TUTTI_COUNT(cuts) && cuts[i] <= l->count; i++)
        for (int cheap = 0; cheap < 2; cheap++) {
            choice c = {.segments = cuts[i], .taken = cuts[i] - 1, .cheap = cheap == 1};
            TUTTI_TRY(try_choice(l, &c, NULL, NULL));
            note_choice(l, s, &c);
            s->tried[s->count++] = c;
        }
    return TUTTI_OK;
}

static int by_flops(const void *a, const void *b)
{
    const choice *x = a, *y = b;
    return (x->flops > y->flops) - (x->flops < y->flops);
}

/* As few segments as keep within the limit, by halving. */
static tutti_status refine(limiter *l, search *s, const choice *from)
{
    int low = 0, high = from->taken; /* `low` is too few, `high` is enough */
    while (high - low > 1) {
        choice c = *from;
        c.taken = (low + high) / 2;
        TUTTI_TRY(try_choice(l, &c, NULL, NULL));
        note_choice(l, s, &c);
        if (c.bytes <= l->limit)
            high = c.taken;
        else
            low = c.taken;
    }
    return TUTTI_OK;
}

/* Layers first: what they make is mostly smaller than what they have inside. */
static tutti_status find_best(limiter *l, search *s)
{
    int refined = 0;
    TUTTI_TRY(try_cuts(l, s));
    l->fine = s->best.segments == 0;
    if (l->fine)
        TUTTI_TRY(try_cuts(l, s));
    qsort(s->tried, (size_t)s->count, sizeof *s->tried, by_flops);
    for (int i = 0; i < s->count && refined < REFINED; i++)
        if (s->tried[i].bytes <= l->limit) {
            TUTTI_TRY(refine(l, s, &s->tried[i]));
            refined++;
        }
    return TUTTI_OK;
}

/* ---- words ---- */

static double mib(size_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* MiB, or a smaller unit where that would round to nothing. */
static const char *in_words(size_t bytes, char ret[32])
{
    if (bytes >= (1 << 20) / 100)
        snprintf(ret, 32, "%.2f MiB", mib(bytes));
    else if (bytes >= 1024)
        snprintf(ret, 32, "%.2f KiB", (double)bytes / 1024);
    else
        snprintf(ret, 32, "%zu bytes", bytes);
    return ret;
}

static tutti_status limit_refuse(const limiter *l, size_t plain, size_t least)
{
    char limit[32], all[32], some[32];
    in_words(l->limit, limit);
    in_words(plain, all);
    if (least >= plain)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "the limit is %s, but the values of a run take %s on %s, and computing "
                          "some of them again does not help; make the batch smaller or the limit "
                          "larger",
                          limit, all, l->device->name);
    return tutti_fail(
        TUTTI_TOO_LARGE,
        "the limit is %s, but the values of a run take %s on %s, and %s at least when some are "
        "computed again; make the batch smaller (they grow with it), the limit larger, or compute "
        "in bf16",
        limit, all, l->device->name, in_words(least, some));
}

static void limit_describe(const limiter *l, const choice *c, size_t plain, char *ret)
{
    snprintf(ret, TUTTI_LIMIT_NOTE,
             "memory: %.2f MiB instead of %.2f (limit %.2f): of %d parts of the forward pass %d "
             "are computed again%s, %.1f %% more FLOPs",
             mib(c->bytes), mib(plain), mib(l->limit), c->segments, c->taken,
             c->cheap ? " where that is cheap" : "", l->flops > 0 ? 100 * c->flops / l->flops : 0);
}

/* Something must be computed again. */
static tutti_status squeeze(limiter *l, size_t plain, tutti_executable **ret,
                            tutti_graph **ret_graph, char *ret_note)
{
    search s = {.least = plain};
    TUTTI_TRY(open_limiter(l));
    TUTTI_TRY(find_best(l, &s));
    if (s.best.segments == 0)
        return limit_refuse(l, plain, s.least);
    TUTTI_TRY(try_choice(l, &s.best, ret, ret_graph));
    limit_describe(l, &s.best, plain, ret_note);
    return TUTTI_OK;
}

tutti_status tutti__compile_within(tutti_device *device, const tutti_partition *partition,
                                   size_t limit, tutti_executable **ret, tutti_graph **ret_graph,
                                   char ret_note[TUTTI_LIMIT_NOTE])
{
    limiter l = {.device = device, .partition = *partition, .limit = limit};
    choice plain = {0};
    ret_note[0] = 0;
    TUTTI_TRY(try_choice(&l, &plain, ret, ret_graph));
    if (plain.bytes <= limit)
        return TUTTI_OK;
    (*ret)->table->destroy(*ret);
    tutti_graph_destroy(*ret_graph);
    *ret = NULL;
    *ret_graph = NULL;
    tutti_status status = squeeze(&l, plain.bytes, ret, ret_graph, ret_note);
    close_limiter(&l);
    return status;
}
