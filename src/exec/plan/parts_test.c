/* parts_test.c: which updates devices do in parts, and that nobody sees half of one. */
#include "exec/plan/parts.h"

#include <math.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "exec/plan/share.h"
#include "tutti/tutti.h"

enum { IN = 12, OUT = 20, ROWS = 7, STEPS = 3 };

/* What a step does beside updating w by its gradient. */
typedef enum kind {
    PLAIN,
    FETCHES_BEFORE, /* the value before the step */
    FETCHES_UPDATE, /* what the update gives */
    USES_UPDATE,    /* something made of it */
    UPDATES_TWICE,  /* the same variable */
    TAKES_ITSELF,   /* the gradient is the variable */
    MAY_FAIL_AFTER, /* so that updates go to copies */
    KINDS
} kind;

typedef struct outcome {
    float w[IN * OUT], fetched[IN * OUT];
    bool shared, shared_again;
} outcome;

typedef struct job {
    tutti_strategy *strategy;
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym x, w, update, fetch, target;
} job;

static tutti_tensor *numbers(int64_t rows, int64_t columns)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, columns}, &t));
    for (int64_t i = 0; i < rows * columns; i++)
        tutti_tensor_set(t, i, sin(0.3 * (double)(i + 1)));
    return t;
}

static void build(job *j, kind what)
{
    tutti_graph *g = j->graph;
    tutti_tensor *start = numbers(IN, OUT);
    tutti_grad grad;
    j->x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, IN));
    j->w = tutti_variable(g, tutti_tensor_init(start), .name = "w");
    tutti_sym loss = tutti_mean(tutti_square(tutti_matmul(j->x, j->w)));
    tutti_sym rate = tutti_scalar(g, TUTTI_F32, 0.1);
    tutti_gradients(loss, 1, &j->w, &grad);
    tutti_sym gradient = what == TAKES_ITSELF ? tutti_read(j->w) : grad.value;
    j->fetch = what == FETCHES_BEFORE ? tutti_read(j->w) : loss;
    j->update = j->target = tutti_sgd_update(j->w, gradient, rate);
    if (what == FETCHES_UPDATE)
        j->fetch = j->update;
    if (what == USES_UPDATE)
        j->fetch = tutti_mul(j->update, 2);
    if (what == UPDATES_TWICE) {
        tutti_sym again;
        TUTTI_WITH_CONTROL(g, j->update)
            again = tutti_sgd_update(j->w, grad.value, rate);
        j->target = again;
    }
    if (what == MAY_FAIL_AFTER)
        j->fetch = tutti_check_numerics(tutti_mul(tutti_sum(j->update), 2), "sum");
    tutti_tensor_release(start);
}

static bool is_shared(const job *j)
{
    tutti_state *state = tutti__engine_state(tutti__session_engine(j->session));
    const tutti_state_variable *w = tutti__state_find(state, "w");
    CHECK_INT(w->pieces.count, 2);
    CHECK(memcmp(tutti_tensor_data(w->pieces.data[0]->value),
                 tutti_tensor_data(w->pieces.data[1]->value), sizeof(float) * IN * OUT) == 0);
    return w->pieces.data[0]->value == w->pieces.data[1]->value;
}

static void step(job *j, outcome *o)
{
    tutti_tensor *x = numbers(ROWS, IN), *fetched;
    CHECK_OK(tutti_run(j->session, .feed = TUTTI_FEED({j->x, x}),
                       .fetch = TUTTI_FETCH({j->fetch, &fetched}), .target = j->target));
    memcpy(o->fetched, tutti_tensor_data(fetched),
           sizeof(float) * (size_t)tutti_tensor_count(fetched));
    tutti_tensor_release(fetched);
    tutti_tensor_release(x);
}

/* Between steps each device adds to its own copy, which is its own again then. */
static outcome run(kind what, int parts)
{
    outcome o = {0};
    job j = {.strategy = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1", .parts = parts)};
    tutti_tensor *copy;
    CHECK_OK(tutti_graph_create(&j.graph));
    CHECK_OK(tutti_session_open(&j.session, j.graph, .strategy = j.strategy));
    build(&j, what);
    tutti_sym more = tutti_assign_add(j.w, tutti_mul(tutti_read(j.w), 0.5));
    CHECK_OK(tutti_run(j.session, .target = tutti_initialize_variables(j.graph)));
    CHECK(!is_shared(&j));
    for (int i = 0; i < STEPS; i++)
        step(&j, &o);
    o.shared = is_shared(&j);
    CHECK_OK(tutti_run(j.session, .target = more));
    CHECK(!is_shared(&j));
    step(&j, &o);
    o.shared_again = is_shared(&j);
    CHECK_INT(tutti_mirrored_count(j.session, j.w), 2);
    CHECK_OK(tutti_mirrored_get(j.session, j.w, 1, &copy));
    memcpy(o.w, tutti_tensor_data(copy), sizeof o.w);
    tutti_tensor_release(copy);
    tutti_session_close(j.session);
    tutti_graph_destroy(j.graph);
    CHECK_OK(tutti_strategy_close(j.strategy));
    return o;
}

TUTTI_TEST(parts_only_where_nobody_looks_during_the_commit)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    for (kind what = PLAIN; what < KINDS; what++) {
        outcome with = run(what, 1), without = run(what, -1), by_size = run(what, 0);
        bool cut = what == PLAIN || what == FETCHES_BEFORE;
        CHECK(with.shared == cut && with.shared_again == cut);
        CHECK(!without.shared && !by_size.shared); /* 240 elements are not worth it */
        CHECK(memcmp(with.w, without.w, sizeof with.w) == 0);
        CHECK(memcmp(with.fetched, without.fetched, sizeof with.fetched) == 0);
    }
}

/* Devices that have memory of their own, or one of each kind, keep copies. */
TUTTI_TEST(parts_need_one_memory)
{
    static const char *const devices[] = {"far:0,far:1", "cpu:0,far:0", "whole:0,whole:1"};
    for (size_t i = 0; i < TUTTI_COUNT(devices); i++) {
        outcome o = {0};
        job j = {.strategy = tutti_strategy_mirrored(.devices = devices[i], .parts = 1)};
        CHECK_OK(tutti_graph_create(&j.graph));
        CHECK_OK(tutti_session_open(&j.session, j.graph, .strategy = j.strategy));
        build(&j, PLAIN);
        CHECK_OK(tutti_run(j.session, .target = tutti_initialize_variables(j.graph)));
        step(&j, &o);
        const tutti_state_variable *w =
            tutti__state_find(tutti__engine_state(tutti__session_engine(j.session)), "w");
        CHECK(w->pieces.data[0]->value != w->pieces.data[1]->value);
        tutti_session_close(j.session);
        tutti_graph_destroy(j.graph);
        CHECK_OK(tutti_strategy_close(j.strategy));
    }
}
