/* tree.c: ensembles of decision trees. All rows go down all trees at once: a place [rows, trees] in
 * the list of nodes moves to the true or false child, as often as the deepest tree is deep; leaves
 * are their own children. Then each leaf's weights [nodes, targets] are picked and combined. */
#include "bridge/onnx/learned.h"

#include <stdio.h>
#include <string.h>

typedef struct forest {
    int64_t nodes, trees, targets;
    int64_t *roots;              /* per tree: its first node */
    int64_t *feature, *yes, *no; /* per node */
    float *limit, *weight;       /* per node; [nodes, targets] */
    uint8_t *missing;            /* per node: NaN goes the true way */
    bool any_missing;
    const char *mode; /* of all nodes that are no leaves */
    int depth;
} forest;

static const int64_t *ints(tutti_onnx_import *m, const char *name, int64_t count)
{
    const int64_t *values;
    if (tutti__onnx_attr_ints(m, name, &values) == count)
        return values;
    tutti__onnx_read_fail(m, TUTTI_CORRUPT, "%s has not one entry for each node", name);
    return NULL;
}

/* The place of node `id` of tree `tree`; nodes of a tree stand together, mostly in order. */
static int64_t tree_find(const forest *f, const int64_t *trees, const int64_t *ids, int64_t tree,
                         int64_t id, int64_t near)
{
    for (int64_t i = near; i < f->nodes && trees[i] == tree; i++)
        if (ids[i] == id)
            return i;
    for (int64_t i = 0; i < f->nodes; i++)
        if (trees[i] == tree && ids[i] == id)
            return i;
    return -1;
}

static bool take_memory(tutti_onnx_import *m, forest *f)
{
    tutti_arena *arena = &m->root->arena;
    size_t n = (size_t)f->nodes;
    f->roots = tutti__arena_array(arena, n, sizeof *f->roots);
    f->feature = tutti__arena_array(arena, n, sizeof *f->feature);
    f->yes = tutti__arena_array(arena, n, sizeof *f->yes);
    f->no = tutti__arena_array(arena, n, sizeof *f->no);
    f->limit = tutti__arena_array(arena, n, sizeof *f->limit);
    f->missing = tutti__arena_array(arena, n, sizeof *f->missing);
    f->weight = tutti__arena_array(arena, n, sizeof *f->weight * (size_t)f->targets);
    if (f->roots && f->feature && f->yes && f->no && f->limit && f->missing && f->weight)
        return true;
    tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
    return false;
}

static bool take_node(tutti_onnx_import *m, forest *f, int64_t i, const char *mode,
                      const int64_t *const lists[5])
{
    bool leaf = strcmp(mode, "LEAF") == 0;
    int64_t root = i;
    while (root > 0 && lists[0][root - 1] == lists[0][i])
        root--;
    f->feature[i] = leaf ? 0 : lists[2][i];
    f->yes[i] = leaf ? i : tree_find(f, lists[0], lists[1], lists[0][i], lists[3][i], root);
    f->no[i] = leaf ? i : tree_find(f, lists[0], lists[1], lists[0][i], lists[4][i], root);
    if (!leaf && f->mode && strcmp(f->mode, mode) != 0) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "nodes compare in different ways");
        return false;
    }
    f->mode = leaf ? f->mode : mode;
    if (i == root)
        f->roots[f->trees++] = i;
    if (f->yes[i] >= 0 && f->no[i] >= 0 && f->feature[i] >= 0)
        return true;
    tutti__onnx_read_fail(m, TUTTI_CORRUPT, "a node's child is not there");
    return false;
}

/* Children stand behind their parents in every tree that is one. */
static int depth_of(tutti_onnx_import *m, const forest *f)
{
    int *depth = tutti__arena_array(&m->root->arena, (size_t)f->nodes, sizeof *depth), most = 0;
    for (int64_t i = 0; depth && i < f->nodes; i++) {
        int64_t children[2] = {f->yes[i], f->no[i]};
        most = depth[i] > most ? depth[i] : most;
        for (int k = 0; k < 2; k++) {
            if (children[k] < i)
                tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "a child stands before its parent");
            if (children[k] > i && depth[children[k]] < depth[i] + 1)
                depth[children[k]] = depth[i] + 1;
        }
    }
    return most;
}

static bool read_nodes(tutti_onnx_import *m, forest *f)
{
    const tutti_onnx_attr *modes = tutti__onnx_attr(m->node, "nodes_modes", ONNX_STRINGS);
    const tutti_onnx_attr *limits = tutti__onnx_attr(m->node, "nodes_values", ONNX_FLOATS);
    static const char *const names[] = {"nodes_treeids", "nodes_nodeids", "nodes_featureids",
                                        "nodes_truenodeids", "nodes_falsenodeids"};
    const int64_t *lists[5], *tracks;
    f->nodes = modes ? (int64_t)modes->strings.count : 0;
    if (f->nodes == 0 || !limits || (int64_t)limits->floats.count != f->nodes) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "its thresholds are not f32, or it has none");
        return false;
    }
    for (int i = 0; i < 5; i++)
        if (!(lists[i] = ints(m, names[i], f->nodes)))
            return false;
    if (!take_memory(m, f))
        return false;
    bool tracked = tutti__onnx_attr_ints(m, "nodes_missing_value_tracks_true", &tracks) == f->nodes;
    for (int64_t i = 0; i < f->nodes; i++) {
        f->limit[i] = limits->floats.items[i];
        f->missing[i] = tracked && tracks[i] != 0;
        f->any_missing = f->any_missing || f->missing[i];
        if (!take_node(m, f, i, modes->strings.items[i], lists))
            return false;
    }
    f->depth = depth_of(m, f);
    return m->status == TUTTI_OK;
}

/* Weights of leaves: lists of (tree, node, target, weight), named after class_ or target_. */
static bool read_leaves(tutti_onnx_import *m, forest *f, const char *prefix)
{
    char name[64];
    const int64_t *lists[3], *trees, *ids;
    static const char *const parts[] = {"treeids", "nodeids", "ids"};
    snprintf(name, sizeof name, "%s_weights", prefix);
    const tutti_onnx_attr *weights = tutti__onnx_attr(m->node, name, ONNX_FLOATS);
    int64_t count = weights ? (int64_t)weights->floats.count : 0;
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s_%s", prefix, parts[i]);
        if (!(lists[i] = ints(m, name, count)))
            return false;
    }
    trees = ints(m, "nodes_treeids", f->nodes);
    ids = ints(m, "nodes_nodeids", f->nodes);
    int64_t near = 0;
    for (int64_t i = 0; trees && ids && i < count; i++) {
        while (near < f->nodes && trees[near] != lists[0][i])
            near++;
        int64_t at = tree_find(f, trees, ids, lists[0][i], lists[1][i], near < f->nodes ? near : 0);
        near = at >= 0 && lists[0][i] == (i + 1 < count ? lists[0][i + 1] : -1) ? near : 0;
        if (at < 0 || lists[2][i] < 0 || lists[2][i] >= f->targets) {
            tutti__onnx_read_fail(m, TUTTI_CORRUPT, "a leaf's weight belongs to no node");
            return false;
        }
        f->weight[at * f->targets + lists[2][i]] += weights->floats.items[i];
    }
    return true;
}

static tutti_sym constant(tutti_onnx_import *m, tutti_dtype dtype, int rank, const int64_t *dims,
                          const void *data)
{
    tutti_tensor *tensor;
    if (tutti_tensor_from(dtype, rank, dims, data, &tensor) != TUTTI_OK) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return TUTTI_NO_SYM;
    }
    tutti_sym sym = tutti_constant(m->graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

static tutti_sym compared(const char *mode, tutti_sym x, tutti_sym limit)
{
    if (strcmp(mode, "BRANCH_LT") == 0)
        return tutti_less(x, limit);
    if (strcmp(mode, "BRANCH_GTE") == 0)
        return tutti_greater_equal(x, limit);
    if (strcmp(mode, "BRANCH_GT") == 0)
        return tutti_greater(x, limit);
    if (strcmp(mode, "BRANCH_EQ") == 0)
        return tutti_equal(x, limit);
    if (strcmp(mode, "BRANCH_NEQ") == 0)
        return tutti_not_equal(x, limit);
    return tutti_less_equal(x, limit);
}

/* [rows, targets] before base values. */
static tutti_sym walk(tutti_onnx_import *m, const forest *f, const char *combine)
{
    int64_t n[2] = {f->nodes, f->targets};
    tutti_sym x = tutti__onnx_features(m, 0);
    tutti_sym feature = constant(m, TUTTI_I64, 1, n, f->feature);
    tutti_sym yes = constant(m, TUTTI_I64, 1, n, f->yes), no = constant(m, TUTTI_I64, 1, n, f->no);
    tutti_sym limit = constant(m, TUTTI_F32, 1, n, f->limit);
    tutti_sym missing = constant(m, TUTTI_BOOL, 1, n, f->missing);
    tutti_sym weight = constant(m, TUTTI_F32, 2, n, f->weight);
    tutti_sym roots = constant(m, TUTTI_I64, 1, &f->trees, f->roots);
    if (!x.node || m->status != TUTTI_OK)
        return TUTTI_NO_SYM;
    tutti_sym rows = tutti_sum(x, .axes = TUTTI_AXES(1), .keepdims = true);
    tutti_sym at = tutti_add(tutti_cast(tutti_zeros_like(rows), TUTTI_I64), roots);
    for (int i = 0; i < f->depth; i++) {
        tutti_sym value = tutti_take_along(x, tutti_gather(feature, at, 0), 1);
        tutti_sym way = compared(f->mode ? f->mode : "", value, tutti_gather(limit, at, 0));
        if (f->any_missing)
            way = tutti_logical_or(
                way, tutti_logical_and(tutti_is_nan(value), tutti_gather(missing, at, 0)));
        at = tutti_where(way, tutti_gather(yes, at, 0), tutti_gather(no, at, 0));
    }
    tutti_sym leaves = tutti_gather(weight, at, 0); /* [rows, trees, targets] */
    tutti_axes trees = TUTTI_AXES(1);
    if (strcmp(combine, "AVERAGE") == 0)
        return tutti_mean(leaves, .axes = trees);
    if (strcmp(combine, "MIN") == 0)
        return tutti_min(leaves, .axes = trees);
    if (strcmp(combine, "MAX") == 0)
        return tutti_max(leaves, .axes = trees);
    return tutti_sum(leaves, .axes = trees);
}

static tutti_sym with_base(tutti_onnx_import *m, tutti_sym y)
{
    int64_t count = (int64_t)tutti__onnx_float_count(m, "base_values");
    tutti_sym base = tutti__onnx_floats(m, "base_values", 1, &count);
    return y.node && base.node ? tutti_add(y, base) : y;
}

static void read_regressor(tutti_onnx_import *m)
{
    forest f = {.targets = tutti__onnx_attr_int(m, "n_targets", 1)};
    if (f.targets < 1 || f.targets > 1 << 20 || !read_nodes(m, &f) || !read_leaves(m, &f, "target"))
        return;
    tutti_sym y = walk(m, &f, tutti__onnx_attr_string(m, "aggregate_function", "SUM"));
    y = with_base(m, y);
    if (y.node)
        tutti__onnx_made(m, 0, tutti__onnx_transformed(m, y));
}

/* Two classes of which one has weights: one column. */
static void read_classifier(tutti_onnx_import *m)
{
    const int64_t *labels, *ids;
    const tutti_onnx_attr *texts = tutti__onnx_attr(m->node, "classlabels_strings", ONNX_STRINGS);
    int classes = tutti__onnx_attr_ints(m, "classlabels_int64s", &labels);
    int count = tutti__onnx_attr_ints(m, "class_ids", &ids);
    forest f = {.targets = texts ? (int64_t)texts->strings.count : classes};
    bool single = f.targets == 2;
    if (f.targets < 1 || !read_nodes(m, &f) || !read_leaves(m, &f, "class"))
        return;
    for (int i = 1; i < count; i++)
        single = single && ids[i] == ids[0];
    tutti_sym y = walk(m, &f, "SUM");
    if (y.node && single)
        y = tutti_slice_axis(y, 1, ids[0], ids[0] + 1);
    tutti__onnx_classified(m, with_base(m, y));
}

const tutti_onnx_op tutti_onnx_tree_regressor = {
    .type = "TreeEnsembleRegressor",
    .domain = "ai.onnx.ml",
    .read = read_regressor,
};

const tutti_onnx_op tutti_onnx_tree_classifier = {
    .type = "TreeEnsembleClassifier",
    .domain = "ai.onnx.ml",
    .read = read_classifier,
};
