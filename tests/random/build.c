/* build.c: the steps of a recipe, one after the other. */
#include <stdlib.h>

#include <string.h>

#include "builder.h"

enum { OF_RECIPE = 1, OF_STEP, OF_START };

static const step_kind *const families[] = {element_steps, shape_steps, matrix_steps,
                                            image_steps,   row_steps,   sequence_steps,
                                            control_steps};
/* How often each is taken in a recipe of any kind. */
static const int shares[] = {6, 4, 4, 4, 4, 2, 1};
enum { FAMILIES = sizeof families / sizeof *families };

int recipe_steps(uint64_t seed)
{
    draws d = draws_of(seed, OF_RECIPE, 0);
    if (recipe_large(seed))
        return 2 + draw_below(&d, 5);
    return draw_below(&d, 3) == 0 ? 3 + draw_below(&d, 5) : 5 + draw_below(&d, MOST_STEPS - 4);
}

bool recipe_batched(uint64_t seed)
{
    draws d = draws_of(seed, OF_RECIPE, 1);
    return draw_below(&d, 2) == 0;
}

bool recipe_large(uint64_t seed)
{
    draws d = draws_of(seed, OF_RECIPE, 5);
    return draw_below(&d, 10) == 0;
}

bool recipe_stateful(uint64_t seed)
{
    draws d = draws_of(seed, OF_RECIPE, 6);
    return draw_below(&d, 4) == 0;
}

int64_t recipe_rows(uint64_t seed, int round)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17};
    draws d = draws_of(seed, OF_RECIPE, round < 3 ? 2 : 3);
    return sizes[draw_below(&d, sizeof sizes / sizeof *sizes)];
}

static const step_kind *draw_kind(builder *b, const int *favour)
{
    int total = 0;
    for (int f = 0; f < FAMILIES; f++)
        total += shares[f] * favour[f];
    int left = below(b, total), f = 0;
    while (left >= shares[f] * favour[f]) {
        left -= shares[f] * favour[f];
        f++;
    }
    const step_kind *kinds = families[f];
    total = 0;
    for (const step_kind *k = kinds; k->name; k++)
        total += b->batched && k->whole_only ? 0 : k->often;
    left = below(b, total);
    for (const step_kind *k = kinds;; k++) {
        int often = b->batched && k->whole_only ? 0 : k->often;
        if (left < often)
            return k;
        left -= often;
    }
}

/* Values stay small, so that a step's cost does. */
static tutti_sym kept_small(builder *b, tutti_sym x)
{
    int64_t count = 1, most = recipe_large(b->recipe.seed) ? 24000 : 4000;
    for (int axis = first_axis(b); axis < rank_of(x); axis++) {
        int64_t limit = most > 4000 ? 260 : axis == 0 ? 40 : 70;
        while (limit > 1 && count * limit > most)
            limit /= 2;
        if (dim_of(x, axis) > limit)
            x = at_most(b, x, axis, limit);
        count *= dim_of(x, axis) < 1 ? 1 : dim_of(x, axis);
    }
    while (rank_of(x) > 5)
        x = with_rank(b, x, 5);
    return x;
}

/* One or two dimensions, but for the batch, each split along its own axes where the layout has
 * them. */
static tutti_sym sharded_at_random(builder *b, tutti_sym x, int step)
{
    draws d = draws_of(b->recipe.seed, OF_STEP, 2000 + (uint64_t)step);
    const char *names[5] = {"-", "-", "-", "-", "-"};
    char text[64] = "";
    if (!b->sharded || rank_of(x) < 1 || rank_of(x) > 5 || draw_below(&d, 2) == 0)
        return x;
    for (int i = 0; i < 2; i++) {
        int axis = draw_below(&d, rank_of(x));
        if (axis >= first_axis(b) && dim_of(x, axis) >= 4 && names[axis][0] == '-')
            names[axis] = i == 0 ? "hidden" : "heads";
    }
    for (int axis = 0; axis < rank_of(x); axis++) {
        strcat(text, axis > 0 ? "," : "");
        strcat(text, names[axis]);
    }
    return tutti_sharded(x, text);
}

static void build_step(builder *b, int step, const int *favour)
{
    b->step = step;
    b->draw = draws_of(b->recipe.seed, OF_STEP, (uint64_t)step);
    int present = b->starts + step;
    /* Near ones more often: chains grow long. */
    int source =
        one_in(b, 3) ? below(b, present) : present - 1 - below(b, present < 3 ? present : 3);
    const step_kind *kind = draw_kind(b, favour);
    b->names[step] = kind->name;
    if (b->recipe.dropped >> step & 1) {
        b->values[present] = b->values[source];
        b->used[present] = true;
        return;
    }
    b->used[source] = true;
    static const char *const places[] = {"far:0", "far:1", "cpu:0", ""};
    draws place = draws_of(b->recipe.seed, OF_STEP, 1000 + (uint64_t)step);
    tutti_device_push(b->graph, b->scattered ? places[draw_below(&place, 4)] : "");
    tutti_name_push(b->graph, kind->name);
    b->values[present] =
        sharded_at_random(b, kept_small(b, kind->make(b, b->values[source])), step);
    tutti_name_pop(b->graph);
    tutti_device_pop(b->graph);
}

static void build_starts(builder *b)
{
    for (int i = 0; i < b->starts; i++) {
        b->draw = draws_of(b->recipe.seed, OF_START, (uint64_t)i);
        int64_t dims[5];
        int rank = b->batched ? 1 + below(b, 4) : below(b, 6);
        bool empty = !b->batched && one_in(b, 40);
        for (int axis = 0; axis < rank; axis++)
            dims[axis] = odd_size(b, rank < 3 ? 70 : rank < 4 ? 17 : 9);
        if (empty && rank > 0)
            dims[below(b, rank)] = 0;
        if (b->batched)
            dims[0] = TUTTI_ANY;
        b->values[i] = !b->batched && one_in(b, 3) ? weight(b, 0, 1, rank, dims)
                                                   : feed(b, b->dtype, rank, dims, -1.5, 1.5);
    }
}

void build(builder *b)
{
    draws d = draws_of(b->recipe.seed, OF_RECIPE, 4);
    int favour[FAMILIES];
    /* Most recipes are about one or two families. */
    for (int f = 0; f < FAMILIES; f++)
        favour[f] = 1 + (draw_below(&d, 3) == 0) * 6;
    b->steps = recipe_steps(b->recipe.seed);
    b->batched = recipe_batched(b->recipe.seed);
    b->starts = 1 + draw_below(&d, MOST_STARTS);
    b->made = b->fed_count = b->output_count = b->update_count = 0;
    for (int i = 0; i < MOST_VALUES; i++)
        b->used[i] = false;
    build_starts(b);
    for (int step = 0; step < b->steps && tutti_graph_check(b->graph) == TUTTI_OK; step++)
        build_step(b, step, favour);
    if (tutti_graph_check(b->graph) == TUTTI_OK)
        build_loss(b);
}

void build_release(builder *b)
{
    for (int i = 0; i < b->held_count; i++)
        tutti_tensor_release(b->held[i]);
    b->held_count = 0;
}
