/* tape.c: a recipe run as a custom loop: every round builds its graph anew, on a tape. */
#include <stdlib.h>

#include "ways.h"

static tutti_status take(results *ret, tutti_sym sym, const char *name)
{
    tutti_tensor *value;
    TUTTI_TRY(tutti_value(sym, &value));
    results_add(ret, value, "%s", name);
    tutti_tensor_release(value);
    return TUTTI_OK;
}

static tutti_status one_round(builder *b, int round, results *ret)
{
    b->round = round;
    b->rows = recipe_rows(b->recipe.seed, round);
    TUTTI_TAPE(tape, b->eager) {
        build(b);
    }
    TUTTI_TRY(tutti_graph_check(b->graph));
    b->again = true;
    if (round > 0 && b->weight_count > 0)
        build_gradients(b, &tape);
    wishes w = {0};
    wish_all(&w, b, round);
    /* Values are asked for before the update is queued, or with it. */
    bool late = round == 1;
    for (int i = 0; !late && i < w.count; i++)
        TUTTI_TRY(take(ret, w.syms[i], w.names[i]));
    if (round > 0 && b->weight_count > 0)
        build_train(b);
    for (int i = 0; late && i < w.count; i++)
        TUTTI_TRY(take(ret, w.syms[i], w.names[i]));
    TUTTI_TRY(tutti_eager_step(b->eager));
    build_release(b);
    return TUTTI_OK;
}

/* Odd seeds make their variables in a step before, as loops mostly do: shapes that depend on data
 * must not follow what initialises. */
static tutti_status make_variables(builder *b)
{
    b->rows = recipe_rows(b->recipe.seed, 0);
    build(b);
    TUTTI_TRY(tutti_graph_check(b->graph));
    b->again = true;
    TUTTI_TRY(tutti_eager_step(b->eager));
    build_release(b);
    return TUTTI_OK;
}

static tutti_status go(builder *b, results *ret)
{
    if (b->recipe.seed % 2 == 1)
        TUTTI_TRY(make_variables(b));
    for (int round = 0; round < ROUNDS; round++)
        TUTTI_TRY(one_round(b, round, ret));
    for (int i = 0; i < b->weight_count; i++) {
        tutti_tensor *value;
        TUTTI_TRY(tutti_eager_get(b->eager, b->weights[i], &value));
        results_add(ret, value, "weight %d", i);
        tutti_tensor_release(value);
    }
    return TUTTI_OK;
}

void run_tape(const run_way *way, random_recipe recipe, results *ret)
{
    builder *b = calloc(1, sizeof *b);
    if (b == NULL)
        abort();
    b->recipe = recipe;
    b->dtype = way->dtype;
    tutti_status status = tutti_eager_open(&b->eager, .device = way->device, .deadline_seconds = 5);
    if (status == TUTTI_OK) {
        b->graph = tutti_eager_graph(b->eager);
        status = go(b, ret);
    }
    if (status != TUTTI_OK)
        results_fail(ret, status, tutti_error_message());
    build_release(b);
    tutti_eager_close(b->eager);
    free(b);
}
