/* sharding.c: see mesh.h. A sharding is a list of (axis, kind): of several that split one dimension
 * the first is outermost. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/container.h"
#include "graph/mesh.h"
#include "tutti/ops_state.h"

static const char *const reductions[] = {[TUTTI_SUM] = "sum",
                                         [TUTTI_MEAN] = "mean",
                                         [TUTTI_MIN] = "min",
                                         [TUTTI_MAX] = "max",
                                         [TUTTI_PROD] = "prod"};

/* ---- reading ---- */

typedef struct reader {
    const char *text, *at;
    const tutti_mesh *mesh;
    tutti_arena *arena;
    int count;
    tutti_axis_shard shards[TUTTI_MESH_AXES];
} reader;

static tutti_status unread(const reader *r, const char *wanted)
{
    return tutti_fail(TUTTI_INVALID,
                      "sharding '%s': at '%s' needs %s; it looks like [data, -, model] "
                      "partial(sum: expert)",
                      r->text, r->at, wanted);
}

static bool sharding_skip(reader *r, const char *sign)
{
    r->at += strspn(r->at, " ");
    size_t size = strlen(sign);
    bool found = strncmp(r->at, sign, size) == 0;
    r->at += found ? size : 0;
    return found;
}

static tutti_status add_axis(reader *r, tutti_shard_kind kind, int dimension,
                             tutti_reduction reduction)
{
    char name[sizeof((tutti_mesh_axis){0}.name)];
    size_t size = 0;
    r->at += strspn(r->at, " ");
    while (isalnum((unsigned char)r->at[size]) || r->at[size] == '_')
        size++;
    if (size == 0 || size >= sizeof name)
        return unread(r, "the name of a mesh axis");
    memcpy(name, r->at, size);
    name[size] = 0;
    if (r->mesh && tutti__mesh_axis(r->mesh, name) < 0) {
        tutti_text mesh = {0};
        tutti__mesh_print(&mesh, r->mesh);
        tutti_status status =
            tutti_fail(TUTTI_INVALID, "sharding '%s': the mesh %s has no axis '%s'", r->text,
                       mesh.data ? mesh.data : "", name);
        tutti__text_free(&mesh);
        return status;
    }
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->shards[i].axis, name) == 0)
            return tutti_fail(TUTTI_INVALID,
                              "sharding '%s' names axis '%s' twice; an axis cuts one dimension, "
                              "once",
                              r->text, name);
    if (r->count == TUTTI_MESH_AXES)
        return tutti_fail(TUTTI_INVALID, "sharding '%s' names more than %d axes", r->text,
                          TUTTI_MESH_AXES);
    const char *axis = tutti__arena_string(r->arena, name);
    if (!axis)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a sharding");
    r->shards[r->count++] = (tutti_axis_shard){axis, kind, dimension, reduction};
    r->at += size;
    return TUTTI_OK;
}

static tutti_status read_dimensions(reader *r, int rank)
{
    int dimension = 0;
    if (!sharding_skip(r, "["))
        return unread(r, "'['");
    for (bool more = !sharding_skip(r, "]"); more; dimension++) {
        if (dimension == rank)
            return tutti_fail(TUTTI_INVALID, "sharding '%s' has more dimensions than the value: %d",
                              r->text, rank);
        if (!sharding_skip(r, "-"))
            do
                TUTTI_TRY(add_axis(r, TUTTI_SPLIT, dimension, TUTTI_SUM));
            while (sharding_skip(r, "*"));
        more = sharding_skip(r, ",");
        if (!more && !sharding_skip(r, "]"))
            return unread(r, "',' or ']'");
    }
    if (dimension != rank)
        return tutti_fail(TUTTI_INVALID, "sharding '%s' has %d dimensions, the value has %d",
                          r->text, dimension, rank);
    return TUTTI_OK;
}

static tutti_status read_partial(reader *r)
{
    for (size_t i = 0; i < TUTTI_COUNT(reductions); i++)
        if (sharding_skip(r, reductions[i])) {
            if (!sharding_skip(r, ":"))
                return unread(r, "':'");
            do
                TUTTI_TRY(add_axis(r, TUTTI_PARTIAL, 0, (tutti_reduction)i));
            while (sharding_skip(r, ","));
            return sharding_skip(r, ")") ? TUTTI_OK : unread(r, "')'");
        }
    return unread(r, "sum, mean, min, max or prod");
}

static tutti_status read_varying(reader *r)
{
    do
        TUTTI_TRY(add_axis(r, TUTTI_VARYING, 0, TUTTI_SUM));
    while (sharding_skip(r, ","));
    return sharding_skip(r, ")") ? TUTTI_OK : unread(r, "')'");
}

tutti_status tutti__sharding_parse(const char *text, int rank, const tutti_mesh *mesh,
                                   tutti_arena *arena, tutti_sharding *ret)
{
    reader r = {.text = text, .at = text, .mesh = mesh, .arena = arena};
    TUTTI_TRY(read_dimensions(&r, rank));
    while (r.at += strspn(r.at, " "), *r.at) {
        if (sharding_skip(&r, "partial("))
            TUTTI_TRY(read_partial(&r));
        else if (sharding_skip(&r, "varying("))
            TUTTI_TRY(read_varying(&r));
        else
            return unread(&r, "partial(…) or varying(…)");
    }
    size_t count = (size_t)r.count;
    tutti_axis_shard *shards = tutti__arena_array(arena, count + 1, sizeof *shards);
    if (!shards)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a sharding");
    memcpy(shards, r.shards, count * sizeof *shards);
    *ret = (tutti_sharding){r.count, shards};
    return TUTTI_OK;
}

/* ---- marking ---- */

/* Handles of a trace outlive the step. */
static tutti_arena *arena_of(tutti_sym value)
{
    tutti_graph *graph = value.node->graph;
    return graph->lasting && value.node->types[value.index].handle ? graph->lasting : &graph->arena;
}

tutti_sym tutti__sharding_mark(tutti_sym value, const tutti_sharding *sharding)
{
    tutti_graph *graph = value.node->graph;
    const tutti_sharding **all = value.node->shardings;
    size_t outputs = (size_t)value.node->output_count;
    if (all && tutti__sharding_equal(all[value.index], sharding))
        return value;
    if (!all && (all = tutti__arena_array(arena_of(value), outputs, sizeof *all)))
        memset((void *)all, 0, outputs * sizeof *all);
    if (!all)
        return tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for a sharding");
    all[value.index] = sharding;
    value.node->shardings = all;
    graph->version++;
    return value;
}

tutti_sym(tutti_sharded)(tutti_sym x, const char *sharding)
{
    if (!x.node || tutti__sym_usable(x.node->graph, x, "tutti_sharded's value", -1) != TUTTI_OK)
        return x;
    tutti_graph *graph = x.node->graph;
    bool brackets = sharding && sharding[0] == '[';
    tutti_arena *arena = arena_of(x);
    if (arena == graph->lasting && x.node->shardings && x.node->shardings[x.index])
        return x; /* a weight that is used again: it is marked once */
    const char *text =
        tutti__arena_format(arena, brackets ? "%s" : "[%s]", sharding ? sharding : "");
    tutti_sharding *parsed = tutti__arena_take(arena, sizeof *parsed);
    if (!text || !parsed)
        return tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for a sharding");
    tutti_status status =
        tutti__sharding_parse(text, x.node->types[x.index].rank, NULL, arena, parsed);
    for (int i = 0; status == TUTTI_OK && i < parsed->count; i++)
        if (parsed->shards[i].kind != TUTTI_SPLIT)
            status = tutti_fail(TUTTI_INVALID,
                                "sharding '%s': a value is constrained to be split along its "
                                "dimensions, and partial or varying follows from what makes it",
                                text);
    if (status != TUTTI_OK)
        return tutti__poison(graph, status, "'%s': %s", x.node->name, tutti_error_message());
    return tutti__sharding_mark(x, parsed);
}

/* ---- printing ---- */

static void print_split(tutti_text *out, const tutti_sharding *s, int dimension)
{
    int found = 0;
    for (int i = 0; s && i < s->count; i++)
        if (s->shards[i].kind == TUTTI_SPLIT && s->shards[i].dimension == dimension)
            tutti__text_add(out, "%s%s", found++ > 0 ? "*" : "", s->shards[i].axis);
    if (found == 0)
        tutti__text_add(out, "-");
}

/* All axes of one kind: " partial(sum: a, b)". */
static void print_others(tutti_text *out, const tutti_sharding *s, tutti_shard_kind kind,
                         tutti_reduction reduction, const char *before)
{
    int found = 0;
    for (int i = 0; s && i < s->count; i++)
        if (s->shards[i].kind == kind && s->shards[i].reduction == reduction)
            tutti__text_add(out, "%s%s", found++ > 0 ? ", " : before, s->shards[i].axis);
    if (found > 0)
        tutti__text_add(out, ")");
}

void tutti__sharding_print(tutti_text *out, const tutti_sharding *sharding, int rank)
{
    tutti__text_add(out, "[");
    for (int d = 0; d < rank; d++) {
        tutti__text_add(out, d > 0 ? ", " : "");
        print_split(out, sharding, d);
    }
    tutti__text_add(out, "]");
    for (size_t i = 0; i < TUTTI_COUNT(reductions); i++) {
        char before[32];
        snprintf(before, sizeof before, " partial(%s: ", reductions[i]);
        print_others(out, sharding, TUTTI_PARTIAL, (tutti_reduction)i, before);
    }
    print_others(out, sharding, TUTTI_VARYING, TUTTI_SUM, " varying(");
}

/* ---- comparing ---- */

static const tutti_axis_shard *sharding_find(const tutti_sharding *s, const char *axis)
{
    for (int i = 0; s && i < s->count; i++)
        if (strcmp(s->shards[i].axis, axis) == 0)
            return &s->shards[i];
    return NULL;
}

/* How many axes cut the dimension outside of this one. */
static int outside(const tutti_sharding *s, const tutti_axis_shard *shard)
{
    int count = 0;
    for (const tutti_axis_shard *each = s->shards; each < shard; each++)
        count += each->kind == TUTTI_SPLIT && each->dimension == shard->dimension;
    return count;
}

static bool is_within(const tutti_sharding *a, const tutti_sharding *b)
{
    for (int i = 0; a && i < a->count; i++) {
        const tutti_axis_shard *x = &a->shards[i], *y = sharding_find(b, x->axis);
        if (x->kind == TUTTI_REPLICATED)
            continue;
        if (!y || x->kind != y->kind)
            return false;
        if (x->kind == TUTTI_SPLIT ? x->dimension != y->dimension || outside(a, x) != outside(b, y)
                                   : x->kind == TUTTI_PARTIAL && x->reduction != y->reduction)
            return false;
    }
    return true;
}

bool tutti__sharding_equal(const tutti_sharding *a, const tutti_sharding *b)
{
    return is_within(a, b) && is_within(b, a);
}

/* ---- pieces ---- */

tutti_status tutti__sharding_box(const tutti_sharding *sharding, const tutti_mesh *mesh, int place,
                                 int rank, const int64_t *dims, int64_t *ret_offset,
                                 int64_t *ret_dims)
{
    int64_t offset[TUTTI_MAX_RANK] = {0}, size[TUTTI_MAX_RANK];
    memcpy(size, dims, (size_t)rank * sizeof *size);
    for (int i = 0; sharding && i < sharding->count; i++) {
        const tutti_axis_shard *shard = &sharding->shards[i];
        int axis = tutti__mesh_axis(mesh, shard->axis), first, d = shard->dimension;
        if (axis < 0)
            return tutti_fail(TUTTI_INVALID, "the mesh has no axis '%s'", shard->axis);
        if (shard->kind != TUTTI_SPLIT)
            continue;
        int64_t ranks = mesh->axes[axis].size, at = tutti__mesh_rank(mesh, place, axis, &first);
        /* floor(i n / N) without a product that is too large. */
        int64_t each = size[d] / ranks, rest = size[d] % ranks;
        int64_t begin = each * at + rest * at / ranks;
        int64_t end = each * (at + 1) + rest * (at + 1) / ranks;
        offset[d] += begin;
        size[d] = end - begin;
    }
    memcpy(ret_offset, offset, (size_t)rank * sizeof *offset);
    memcpy(ret_dims, size, (size_t)rank * sizeof *size);
    return TUTTI_OK;
}
