/* updates_random_test.c: random steps of reads and updates against a walk through the graph.
 *
 * A read gives the value of the last update of its variable that it follows, by edges of any kind,
 * or the value of before the step. Updates of one variable are chained, so that their order is
 * known. */
#include "base/random.h"
#include "base/test.h"
#include "tutti/tutti.h"

#define NODES 30
#define VARIABLES 3

enum { READ, ADD, ASSIGN, ASSIGN_ADD, CHECK_IT, KINDS };

typedef struct step {
    int kind, variable, inputs[2], control; /* -1: none */
    bool follows[NODES];                    /* ancestors */
    double value;                           /* a read's, an update's, a sum's */
    bool fetched;
    tutti_sym sym;
} step;

typedef struct story {
    tutti_graph *graph;
    tutti_sym variables[VARIABLES];
    step steps[NODES];
    double before[VARIABLES], after[VARIABLES];
    uint64_t seed, drawn;
} story;

static int draw(story *s, int limit)
{
    return (int)(tutti__random_f32((tutti_random_key){.seed = s->seed}, s->drawn++) *
                 (float)limit) %
           limit;
}

static void follow(step *me, const story *s, int other)
{
    if (other < 0)
        return;
    me->follows[other] = true;
    for (int i = 0; i < NODES; i++)
        me->follows[i] = me->follows[i] || s->steps[other].follows[i];
}

static int last_update(const story *s, const bool *among, int variable, int before)
{
    for (int i = before - 1; i >= 0; i--)
        if ((s->steps[i].kind == ASSIGN || s->steps[i].kind == ASSIGN_ADD) &&
            s->steps[i].variable == variable && (!among || among[i]))
            return i;
    return -1;
}

static void choose(story *s, int n, bool may_fail)
{
    step *me = &s->steps[n];
    *me = (step){.kind = n < 2 ? READ : draw(s, may_fail ? KINDS : CHECK_IT),
                 .variable = draw(s, VARIABLES),
                 .inputs = {-1, -1},
                 .control = -1};
    if (me->kind != READ)
        me->inputs[0] = draw(s, n);
    if (me->kind == ADD)
        me->inputs[1] = draw(s, n);
    bool update = me->kind == ASSIGN || me->kind == ASSIGN_ADD;
    if (update)
        me->control = last_update(s, NULL, me->variable, n);
    if (me->control < 0 && n > 0 && draw(s, 3) == 0)
        me->control = draw(s, n);
    follow(me, s, me->inputs[0]);
    follow(me, s, me->inputs[1]);
    follow(me, s, me->control);
    int latest = last_update(s, update ? NULL : me->follows, me->variable, n);
    double held = latest < 0 ? s->before[me->variable] : s->steps[latest].value;
    double x = me->inputs[0] < 0 ? 0 : s->steps[me->inputs[0]].value,
           y = me->inputs[1] < 0 ? 0 : s->steps[me->inputs[1]].value;
    me->value = me->kind == READ         ? held
                : me->kind == ADD        ? 0.5 * (x + y)
                : me->kind == ASSIGN_ADD ? held + x
                                         : x;
    me->fetched = draw(s, 2) == 0;
}

static void build(story *s, step *me)
{
    tutti_sym a = me->inputs[0] < 0 ? TUTTI_NO_SYM : s->steps[me->inputs[0]].sym,
              v = s->variables[me->variable];
    if (me->control >= 0)
        tutti_control_push(s->graph, 1, &s->steps[me->control].sym);
    switch (me->kind) {
    case READ:
        me->sym = tutti_read(v);
        break;
    case ADD:
        me->sym = tutti_mul(tutti_add(a, s->steps[me->inputs[1]].sym), 0.5);
        break;
    case ASSIGN:
        me->sym = tutti_assign(v, a);
        break;
    case ASSIGN_ADD:
        me->sym = tutti_assign_add(v, a);
        break;
    default:
        me->sym = tutti_check_numerics(a, "random step");
        break;
    }
    if (me->control >= 0)
        tutti_control_pop(s->graph);
}

static void check_run(story *s, tutti_session *session, int round)
{
    tutti_fetch fetches[NODES];
    tutti_sym targets[NODES];
    tutti_tensor *values[NODES] = {0}, *value;
    int fetched = 0, wanted = 0;
    for (int n = 0; n < NODES; n++) {
        if (s->steps[n].fetched)
            fetches[fetched++] = (tutti_fetch){s->steps[n].sym, &values[n]};
        targets[wanted++] = s->steps[n].sym;
    }
    CHECK_OK(tutti_run(session, .fetch = {fetched, fetches}, .targets = {wanted, targets}));
    for (int n = 0; n < NODES; n++) {
        if (values[n] && tutti_tensor_get(values[n], 1) != (double)(float)s->steps[n].value)
            tutti__test_fail(__FILE__, __LINE__,
                             "seed %d round %d: node %d (kind %d) gave %g, expected %g",
                             (int)s->seed, round, n, s->steps[n].kind,
                             tutti_tensor_get(values[n], 1), s->steps[n].value);
        tutti_tensor_release(values[n]);
    }
    for (int v = 0; v < VARIABLES; v++) {
        int latest = last_update(s, NULL, v, NODES);
        s->after[v] = latest < 0 ? s->before[v] : s->steps[latest].value;
        CHECK_OK(tutti_session_get(session, s->variables[v], &value));
        if (tutti_tensor_get(value, 0) != s->after[v])
            tutti__test_fail(__FILE__, __LINE__, "seed %d: variable %d is %g, expected %g",
                             (int)s->seed, v, tutti_tensor_get(value, 0), s->after[v]);
        tutti_tensor_release(value);
    }
}

static void tell(uint64_t seed, const char *device, const char *second, bool may_fail)
{
    story s = {.seed = seed};
    tutti_session *session;
    CHECK_OK(tutti_graph_create(&s.graph));
    CHECK_OK(tutti_session_open(&session, s.graph, .device = device, .deadline_seconds = 20));
    for (int v = 0; v < VARIABLES; v++)
        TUTTI_WITH_DEVICE(s.graph, v == 1 ? second : device)
            s.variables[v] = tutti_variable(s.graph, tutti_full(s.before[v] = 1024 << v, 2));
    for (int n = 0; n < NODES; n++) {
        choose(&s, n, may_fail);
        build(&s, &s.steps[n]);
    }
    CHECK_OK(tutti_run(session, .target = tutti_initialize_variables(s.graph)));
    check_run(&s, session, 0);
    tutti_session_close(session);
    tutti_graph_destroy(s.graph);
}

static void tell_many(int count, const char *device, const char *second)
{
    for (int seed = 0; seed < (TUTTI_TEST_SANITIZED ? count / 5 : count); seed++) {
        tell((uint64_t)seed, device, second, false);
        tell((uint64_t)seed, device, second, true);
    }
}

TUTTI_TEST(random_updates_on_cpu)
{
    tell_many(300, "cpu:0", "cpu:0");
}
TUTTI_TEST(random_updates_on_far)
{
    tell_many(100, "far:0", "far:0");
}
TUTTI_TEST(random_updates_on_two_devices)
{
    tell_many(100, "cpu:0", "far:1");
}
