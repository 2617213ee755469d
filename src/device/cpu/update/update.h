/* update.h: optimizers' updates in one pass over the memory, dense and by rows. A kernel's file
 * gives the rule for one register of elements; the loops are here.
 *
 * Work is cut by shape only, and every element is computed by itself, so that results depend
 * neither on threads nor on where a piece begins. */
#ifndef TUTTI_DEVICE_CPU_UPDATE_UPDATE_H
#define TUTTI_DEVICE_CPU_UPDATE_UPDATE_H

#include <math.h>
#include <string.h>

#include "device/cpu/vector.h"
#include "ops/update/rule.h"
#include "program/kernel.h"

enum {
    UPDATE_PIECE = 16384,  /* elements */
    UPDATE_ROW_PIECE = 32, /* rows of a gradient */
    UPDATE_BLOCK = 64      /* registers whose squares are summed before they go into a double */
};

typedef struct tutti_update_work {
    int64_t first, end;               /* elements of the variable that are updated */
    int slots;                        /* x[0] is the variable, then these */
    float *x[1 + TUTTI_UPDATE_SLOTS]; /* written */
    const float *gradient;            /* or the rows */
    const float *addend;              /* dense: to be added to the gradient; or NULL */
    float *echo;       /* where new values of the variable go too, element by element; or NULL */
    float scale, clip; /* of the gradient: times scale, then within [-clip, clip] */
    float numbers[TUTTI_UPDATE_NUMBERS];
    int64_t row_size;        /* elements; 0: the gradient is dense */
    tutti_row_groups groups; /* of the rows */
    double *sums;            /* two for each piece, for rules that go by norms */
} tutti_update_work;

/* The rule for a register of elements; see tutti_update_rule. */
typedef void tutti_update_element(const float *numbers, vec g, vec *x);
typedef vec tutti_update_measure(const float *numbers, vec g, const vec *x);

/* Bids for f32. */
int tutti__update_score(const tutti_kernel_query *query);
/* Room for the sums of rules that go by norms, and for rows in order. */
size_t tutti__update_workspace(const tutti_kernel_query *query);
/* The whole kernel: `piece` is called with a tutti_update_work; `measure` (optional) before. */
tutti_status tutti__update_run(const tutti_kernel_call *call,
                               void (*piece)(void *work, int64_t index),
                               void (*measure)(void *work, int64_t index));

/* Registers of the variable and of each slot there is. Written out: an array becomes registers only
 * where every index is a constant. */
VEC_INLINE void update_load_all(vec *value, float *const *x, int64_t at, int slots)
{
    value[0] = vec_load(x[0] + at);
    if (slots > 0)
        value[1] = vec_load(x[1] + at);
    if (slots > 1)
        value[2] = vec_load(x[2] + at);
    if (slots > 2)
        value[3] = vec_load(x[3] + at);
}

VEC_INLINE void update_store_all(const vec *value, float *const *x, int64_t at, int slots)
{
    vec_store(x[0] + at, value[0]);
    if (slots > 0)
        vec_store(x[1] + at, value[1]);
    if (slots > 1)
        vec_store(x[2] + at, value[2]);
    if (slots > 2)
        vec_store(x[3] + at, value[3]);
}

/* The gradient as the rule sees it; a NaN stays one. */
VEC_INLINE vec update_gradient(const tutti_update_work *w, vec g)
{
    return vec_at_most(vec_at_least(g * w->scale, -w->clip), w->clip);
}

/* Elements [at, at + VEC_LANES) of the arrays; their gradient is g. Gives the variable's. */
VEC_INLINE vec update_register(const float *n, float *const *x, int64_t at, int slots, vec g,
                               tutti_update_element *element)
{
    vec value[1 + TUTTI_UPDATE_SLOTS];
    update_load_all(value, x, at, slots);
    value[0] *= n[TUTTI_UPDATE_KEEP];
    element(n, g, value);
    update_store_all(value, x, at, slots);
    return value[0];
}

/* The same for fewer elements than fill a register. */
VEC_INLINE void update_rest(const float *n, float *const *x, int64_t at, int lanes, int slots,
                            vec g, tutti_update_element *element)
{
    float rest[1 + TUTTI_UPDATE_SLOTS][VEC_LANES], *all[1 + TUTTI_UPDATE_SLOTS];
    for (int k = 0; k <= slots; k++) {
        all[k] = rest[k];
        VEC_UNROLL for (int i = 0; i < VEC_LANES; i++) rest[k][i] = i < lanes ? x[k][at + i] : 1;
    }
    update_register(n, all, 0, slots, g, element);
    for (int k = 0; k <= slots; k++)
        for (int i = 0; i < lanes; i++)
            x[k][at + i] = rest[k][i];
}

/* A register of which only `lanes` are there; the others 0. */
VEC_INLINE vec update_load(const float *p, int lanes)
{
    float rest[VEC_LANES] = {0};
    for (int i = 0; i < lanes; i++)
        rest[i] = p[i];
    return vec_load(rest);
}

VEC_INLINE void update_span(const tutti_update_work *w, const float *n, float *const *x,
                            int64_t first, int64_t end, int slots, tutti_update_element *element)
{
    const tutti_update_work cut = {.scale = w->scale, .clip = w->clip}; /* in registers */
    const float *gradient = w->gradient, *addend = w->addend;
    int64_t i = first;
    if (cut.scale == 1 && cut.clip == INFINITY && addend)
        for (; i + VEC_LANES <= end; i += VEC_LANES)
            update_register(n, x, i, slots, vec_load(gradient + i) + vec_load(addend + i), element);
    for (; addend && i + VEC_LANES <= end; i += VEC_LANES)
        update_register(n, x, i, slots,
                        update_gradient(&cut, vec_load(gradient + i) + vec_load(addend + i)),
                        element);
    if (cut.scale == 1 && cut.clip == INFINITY && w->echo)
        for (float *echo = w->echo; i + VEC_LANES <= end; i += VEC_LANES)
            vec_store(echo + i, update_register(n, x, i, slots, vec_load(gradient + i), element));
    int64_t echoed = i;
    if (cut.scale == 1 && cut.clip == INFINITY)
        for (; i + VEC_LANES <= end; i += VEC_LANES)
            update_register(n, x, i, slots, vec_load(gradient + i), element);
    for (; i + VEC_LANES <= end; i += VEC_LANES)
        update_register(n, x, i, slots, update_gradient(&cut, vec_load(gradient + i)), element);
    if (i < end) {
        vec g = update_load(gradient + i, (int)(end - i));
        if (addend)
            g += update_load(addend + i, (int)(end - i));
        update_rest(n, x, i, (int)(end - i), slots, update_gradient(&cut, g), element);
    }
    if (w->echo)
        memcpy(w->echo + echoed, x[0] + echoed, (size_t)(end - echoed) * sizeof **x);
}

/* Rows [at, end) of the order have one index: their sum moves that row of the variable. */
VEC_INLINE void update_row(const tutti_update_work *w, const float *n, float *const *x, int64_t at,
                           int64_t end, int slots, tutti_update_element *element)
{
    const int64_t size = w->row_size, base = w->groups.index[at] * size;
    const int64_t *order = w->groups.order;
    int64_t c = 0;
    for (; c + VEC_LANES <= size; c += VEC_LANES) {
        vec g = vec_load(w->gradient + order[at] * size + c);
        for (int64_t r = at + 1; r < end; r++)
            g += vec_load(w->gradient + order[r] * size + c);
        update_register(n, x, base + c, slots, update_gradient(w, g), element);
    }
    if (c < size) {
        int lanes = (int)(size - c);
        vec g = update_load(w->gradient + order[at] * size + c, lanes);
        for (int64_t r = at + 1; r < end; r++)
            g += update_load(w->gradient + order[r] * size + c, lanes);
        update_rest(n, x, base + c, lanes, slots, update_gradient(w, g), element);
    }
}

/* Groups that begin among the rows of this piece. */
VEC_INLINE void update_rows(const tutti_update_work *w, const float *n, float *const *x,
                            int64_t piece, int slots, tutti_update_element *element)
{
    const tutti_row_groups *groups = &w->groups;
    int64_t at = piece * UPDATE_ROW_PIECE, stop = at + UPDATE_ROW_PIECE;
    stop = stop < groups->count ? stop : groups->count;
    if (at > 0 && at < stop && groups->index[at] == groups->index[at - 1])
        at = tutti__row_groups_next(groups, at);
    while (at < stop) {
        int64_t next = tutti__row_groups_next(groups, at);
        update_row(w, n, x, at, next, slots, element);
        at = next;
    }
}

/* One piece; `slots` and `element` are constants at every call, so that all is one loop. */
VEC_INLINE void update_piece(const void *context, int64_t piece, int slots,
                             tutti_update_element *element)
{
    const tutti_update_work *w = context;
    float n[TUTTI_UPDATE_NUMBERS], *x[1 + TUTTI_UPDATE_SLOTS];
    for (int i = 0; i < TUTTI_UPDATE_NUMBERS; i++)
        n[i] = w->numbers[i];
    for (int k = 0; k <= slots; k++)
        x[k] = w->x[k];
    int64_t first = w->first + piece * UPDATE_PIECE, end = first + UPDATE_PIECE;
    if (w->row_size > 0)
        update_rows(w, n, x, piece, slots, element);
    else
        update_span(w, n, x, first, end < w->end ? end : w->end, slots, element);
}

/* Sums of squares of the variable and of what the rule measures, over one piece. */
VEC_INLINE void update_measure(const void *context, int64_t piece, int slots,
                               tutti_update_measure *measure)
{
    const tutti_update_work *w = context;
    int64_t i = piece * UPDATE_PIECE, end = i + UPDATE_PIECE < w->end ? i + UPDATE_PIECE : w->end;
    double variable = 0, measured = 0;
    while (i < end) {
        vec squares = {0}, others = {0};
        for (int block = 0; block < UPDATE_BLOCK && i < end; block++, i += VEC_LANES) {
            int lanes = end - i < VEC_LANES ? (int)(end - i) : VEC_LANES;
            vec x[1 + TUTTI_UPDATE_SLOTS], g;
            g = lanes < VEC_LANES ? update_load(w->gradient + i, lanes) : vec_load(w->gradient + i);
            for (int k = 0; k <= slots; k++)
                x[k] = lanes < VEC_LANES ? update_load(w->x[k] + i, lanes) : vec_load(w->x[k] + i);
            x[0] *= w->numbers[TUTTI_UPDATE_KEEP];
            vec y = measure(w->numbers, update_gradient(w, g), x);
            squares += x[0] * x[0];
            others += y * y;
        }
        VEC_UNROLL for (int k = 0; k < VEC_LANES; k++)
        {
            variable += squares[k];
            measured += others[k];
        }
    }
    w->sums[2 * piece] = variable;
    w->sums[2 * piece + 1] = measured;
}

#endif
