/* meetings_random_test.c: random steps of reads, updates, sums over devices and users' own
 * transfers, on random devices, against a walk through the graph.
 *
 * As in updates_random_test.c a read gives the value of the last update of its variable that it
 * follows, by edges of any kind, through what other devices send and give to a sum too. Where nodes
 * are placed changes nothing, and nobody waits in vain. */
#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "base/test.h"
#include "exec/run/mesh_test.h"
#include "tutti/tutti.h"

#define STEPS 24
#define VARIABLES 3
#define DEVICES 3
#define LENGTH 4

enum { READ, MEAN, SQUASH, ASSIGN, ASSIGN_ADD, SUM, PASS, PICK, KINDS };

static const char *const devices[DEVICES] = {"far:0", "far:1", "cpu:0"}; /* two of them meet */

typedef struct step {
    int kind, variable, device, inputs[2], control; /* -1: none */
    bool follows[STEPS];                            /* ancestors */
    double value;
    bool fetched;
    tutti_sym sym, effect; /* effect: of a transfer, its send */
} step;

typedef struct story {
    tutti_graph *graph;
    tutti_sym variables[VARIABLES];
    step steps[STEPS];
    uint64_t seed, drawn;
} story;

static int draw(story *s, int limit)
{
    return (int)(tutti__random_f32((tutti_random_key){.seed = s->seed}, s->drawn++) *
                 (float)limit) %
           limit;
}

static double begins(int variable)
{
    return 0.25 * (variable + 1);
}

static bool is_update(const step *me)
{
    return me->kind == ASSIGN || me->kind == ASSIGN_ADD;
}

static void follow(step *me, const story *s, int other)
{
    if (other < 0)
        return;
    me->follows[other] = true;
    for (int i = 0; i < STEPS; i++)
        me->follows[i] = me->follows[i] || s->steps[other].follows[i];
}

static int last_update(const story *s, const bool *among, int variable, int before)
{
    for (int i = before - 1; i >= 0; i--)
        if (is_update(&s->steps[i]) && s->steps[i].variable == variable && (!among || among[i]))
            return i;
    return -1;
}

static double value_of(const story *s, const step *me, double held)
{
    double x = me->inputs[0] < 0 ? 0 : s->steps[me->inputs[0]].value,
           y = me->inputs[1] < 0 ? 0 : s->steps[me->inputs[1]].value;
    switch (me->kind) {
    case READ:
        return held;
    case ASSIGN_ADD:
        return held + x;
    case MEAN:
    case SUM:
        return 0.5 * (x + y);
    case SQUASH:
        return x / (1 + fabs(x));
    default:
        return x;
    }
}

static void choose(story *s, int n, bool picks)
{
    step *me = &s->steps[n];
    *me = (step){.kind = n < 2 ? READ : draw(s, picks ? KINDS : PICK),
                 .variable = draw(s, VARIABLES),
                 .device = draw(s, DEVICES),
                 .inputs = {-1, -1},
                 .control = -1};
    bool update = is_update(me);
    if (me->kind != READ)
        me->inputs[0] = draw(s, n);
    if (me->kind == MEAN || me->kind == SUM)
        me->inputs[1] = draw(s, n);
    if (update)
        me->control = last_update(s, NULL, me->variable, n);
    if (me->control < 0 && n > 0 && draw(s, 3) == 0)
        me->control = draw(s, n);
    follow(me, s, me->inputs[0]);
    follow(me, s, me->inputs[1]);
    follow(me, s, me->control);
    /* What a shape depends on may not follow an update of the same run. */
    for (int i = 0; i < n && me->kind == PICK; i++)
        if (me->follows[i] && is_update(&s->steps[i]))
            me->kind = SQUASH;
    int latest = last_update(s, update ? NULL : me->follows, me->variable, n);
    me->value = value_of(s, me, latest < 0 ? begins(me->variable) : s->steps[latest].value);
    me->fetched = draw(s, 2) == 0;
}

/* All of a value, by a shape that depends on it. */
static tutti_sym pick(tutti_sym a)
{
    tutti_sym some = tutti_nonzero(tutti_greater_equal(a, a));
    return tutti_broadcast_to(tutti_mean(tutti_gather(a, tutti_reshape(some, -1), 0)), LENGTH);
}

/* What two devices sum, each of which has a copy of it. */
static tutti_sym sum(tutti_graph *g, tutti_sym a, tutti_sym b)
{
    tutti_sym sums[2];
    for (int i = 0; i < 2; i++)
        TUTTI_WITH_DEVICE(g, devices[i])
            sums[i] = tutti_all_reduce(i ? b : a, "batch", 2, TUTTI_SUM);
    return tutti_mul(tutti_add(sums[0], sums[1]), 0.25);
}

static tutti_sym pass(story *s, step *me, tutti_sym a)
{
    tutti_sym got = TUTTI_NO_SYM;
    char channel[32];
    const char *to = devices[(me->device + 1) % DEVICES];
    snprintf(channel, sizeof channel, "step_%d", (int)(me - s->steps));
    TUTTI_WITH_DEVICE(s->graph, devices[me->device])
        me->effect = tutti_send(a, channel, to);
    TUTTI_WITH_DEVICE(s->graph, to)
        got = tutti_recv(s->graph, channel, devices[me->device], TUTTI_TYPE(TUTTI_F32, LENGTH));
    return got;
}

static tutti_sym make(story *s, step *me)
{
    tutti_sym a = me->inputs[0] < 0 ? TUTTI_NO_SYM : s->steps[me->inputs[0]].sym,
              b = me->inputs[1] < 0 ? TUTTI_NO_SYM : s->steps[me->inputs[1]].sym,
              v = s->variables[me->variable];
    switch (me->kind) {
    case READ:
        return tutti_read(v);
    case MEAN:
        return tutti_mul(tutti_add(a, b), 0.5);
    case SQUASH:
        return tutti_div(a, tutti_add(tutti_abs(a), 1));
    case ASSIGN:
        return tutti_assign(v, a);
    case ASSIGN_ADD:
        return tutti_assign_add(v, a);
    case SUM:
        return sum(s->graph, a, b);
    case PASS:
        return pass(s, me, a);
    default:
        return pick(a);
    }
}

static void build(story *s, step *me)
{
    bool wished = me->kind != READ && !is_update(me);
    if (me->control >= 0)
        tutti_control_push(s->graph, 1, &s->steps[me->control].sym);
    if (wished)
        tutti_device_push(s->graph, devices[me->device]);
    me->sym = make(s, me);
    if (wished)
        tutti_device_pop(s->graph);
    if (me->control >= 0)
        tutti_control_pop(s->graph);
}

static void check_run(story *s, tutti_session *session)
{
    tutti_fetch fetches[STEPS];
    tutti_sym targets[STEPS];
    tutti_tensor *values[STEPS] = {0}, *value;
    int fetched = 0, wanted = 0;
    for (int n = 0; n < STEPS; n++) {
        const step *me = &s->steps[n];
        if (me->fetched)
            fetches[fetched++] = (tutti_fetch){me->sym, &values[n]};
        if (me->kind == PASS || is_update(me))
            targets[wanted++] = me->kind == PASS ? me->effect : me->sym;
    }
    if (tutti_run(session, .fetch = {fetched, fetches}, .targets = {wanted, targets}) != TUTTI_OK)
        tutti__test_fail(__FILE__, __LINE__, "seed %d: %s", (int)s->seed, tutti_error_message());
    for (int n = 0; n < STEPS; n++) {
        if (!values[n])
            continue;
        double got = tutti_tensor_get(values[n], 1);
        if (!(fabs(got - s->steps[n].value) < 1e-4))
            tutti__test_fail(__FILE__, __LINE__, "seed %d: step %d (kind %d) gave %g, expected %g",
                             (int)s->seed, n, s->steps[n].kind, got, s->steps[n].value);
        tutti_tensor_release(values[n]);
    }
    for (int v = 0; v < VARIABLES; v++) {
        int latest = last_update(s, NULL, v, STEPS);
        CHECK_OK(tutti_session_get(session, s->variables[v], &value));
        CHECK_NEAR(tutti_tensor_get(value, 0), latest < 0 ? begins(v) : s->steps[latest].value,
                   1e-4);
        tutti_tensor_release(value);
    }
}

static void tell(uint64_t seed, bool picks)
{
    story s = {.seed = seed};
    tutti_session *session;
    CHECK_OK(tutti_graph_create(&s.graph));
    for (int v = 0; v < VARIABLES; v++)
        TUTTI_WITH_DEVICE(s.graph, devices[draw(&s, DEVICES)])
            s.variables[v] = tutti_variable(s.graph, tutti_full(begins(v), LENGTH));
    for (int n = 0; n < STEPS; n++) {
        choose(&s, n, picks);
        build(&s, &s.steps[n]);
    }
    CHECK_OK(tutti_graph_check(s.graph));
    CHECK_OK(tutti_session_open(&session, s.graph, .device = devices[0], .deadline_seconds = 20,
                                .mesh = "batch=2", .mesh_devices = mesh_devices(2, devices)));
    CHECK_OK(tutti_run(session, .target = tutti_initialize_variables(s.graph)));
    check_run(&s, session);
    tutti_session_close(session);
    tutti_graph_destroy(s.graph);
}

static void tell_many(int count, bool picks)
{
    for (int seed = 0; seed < (TUTTI_TEST_SANITIZED ? count / 5 : count); seed++)
        tell((uint64_t)seed, picks);
}

TUTTI_TEST(random_meetings_of_three_devices)
{
    tell_many(200, false);
}
TUTTI_TEST(random_meetings_where_shapes_depend_on_data)
{
    tell_many(60, true);
}
