/* operator.c: operators from outside the library: registering, their own samples, and what is said
 * when they are used wrongly. */
#include "acme/acme.h"
#include "check.h"

/* ---- registering ---- */

static void check_registering(void)
{
    const tutti_op *list[1024];
    size_t before = tutti_op_list(0, NULL), count, ours = 0;
    CHECK(tutti_op_find("acme.cubic_swish") == NULL);
    CHECK_OK(acme_register());
    CHECK(tutti_op_find("acme.cubic_swish") == &acme_cubic_swish);
    CHECK(tutti_op_find("acme.weighted_rows@1") == &acme_weighted_rows);
    CHECK(tutti_op_find("acme.weighted_rows@2") == NULL);
    count = tutti_op_list(sizeof list / sizeof list[0], list);
    CHECK(count == before + 3);
    for (size_t i = 0; i < count; i++)
        ours += strncmp(list[i]->name, "acme.", 5) == 0;
    CHECK(ours == 3);
}

static void check_refusals(void)
{
    static tutti_op twin, nameless, shapeless, kernelless;
    twin = nameless = shapeless = kernelless = acme_cubic_swish;
    CHECK(tutti_op_register(&acme_cubic_swish) == TUTTI_EXISTS);
    CHECK_SAYS("acme.cubic_swish@1");
    twin.doc = "another descriptor of the same name";
    CHECK(tutti_op_register(&twin) == TUTTI_EXISTS);
    nameless.name = "";
    CHECK(tutti_op_register(&nameless) == TUTTI_INVALID);
    shapeless.name = "acme.shapeless";
    shapeless.infer = NULL;
    CHECK(tutti_op_register(&shapeless) == TUTTI_INVALID);
    CHECK_SAYS("acme.shapeless");
    kernelless.name = "acme.kernelless";
    kernelless.reference = NULL;
    CHECK(tutti_op_register(&kernelless) == TUTTI_INVALID);
    CHECK(tutti_op_find("acme.shapeless") == NULL);
    CHECK(tutti_op_find("acme.kernelless") == NULL);
}

/* ---- samples ---- */

static tutti_status wrong_gradient(tutti_gradient_call *node)
{
    node->input_grads[0] = node->output_grads[0];
    return TUTTI_OK;
}

static int wrong_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    (void)node;
    if (capacity > 0)
        ret[0] = (tutti_split){.inputs = {0, 0}, .outputs = {0, 0}};
    return 1;
}

/* The self test passes them, and would not pass anything. */
static void check_samples(void)
{
    CHECK_OK(tutti_op_selftest(&acme_cubic_swish));
    CHECK_OK(tutti_op_selftest(&acme_weighted_rows));
    CHECK_OK(tutti_op_selftest(&acme_keep_positive));
    tutti_op wrong = acme_cubic_swish;
    wrong.gradient = wrong_gradient;
    CHECK(tutti_op_selftest(&wrong) == TUTTI_CHECK_FAILED);
    CHECK_SAYS("selftest of acme.cubic_swish, sample \"f32[2,3]\"");
    wrong = acme_weighted_rows;
    wrong.split = wrong_split;
    CHECK(tutti_op_selftest(&wrong) != TUTTI_OK);
    CHECK_SAYS("selftest of acme.weighted_rows");
}

/* ---- mistakes of users ---- */

typedef struct mistake {
    tutti_graph *graph;
    tutti_sym x, counts, column; /* f32[4,3], i64[4,3], f32[4] */
} mistake;

static mistake begin(void)
{
    mistake m = {0};
    CHECK_OK(tutti_graph_create(&m.graph));
    m.x = tutti_placeholder(m.graph, TUTTI_F32, 4, 3);
    m.counts = tutti_placeholder(m.graph, TUTTI_I64, 4, 3);
    m.column = tutti_placeholder(m.graph, TUTTI_F32, 4);
    return m;
}

/* The graph holds a mistake that was made on `line` of this file; a session reports the same. */
static void end(mistake m, tutti_sym made, tutti_status status, const char *op, const char *part,
                int line)
{
    char place[64], what[512];
    tutti_session *session = NULL;
    tutti_tensor *value = NULL;
    snprintf(place, sizeof place, "(%s:%d)", __FILE__, line);
    for (int round = 0; round < 2; round++) {
        tutti_status got = round == 0 ? tutti_graph_check(m.graph)
                                      : tutti_run(session, .fetch = TUTTI_FETCH({made, &value}));
        const char *message = tutti_error_message();
        bool says = strstr(message, place) && strstr(message, op) && strstr(message, part);
        snprintf(what, sizeof what, "status %d with \"%s\" at %s", (int)status, part, place);
        check_at(got == status && says, __FILE__, line, what);
        if (round == 0)
            CHECK_OK(tutti_session_open(&session, m.graph));
    }
    CHECK(!tutti_sym_ok(made));
    tutti_session_close(session);
    tutti_graph_destroy(m.graph);
}

/* One line each: the place is that line. */
#define MISTAKE(status, op, part, call)                                                            \
    do {                                                                                           \
        mistake m = begin();                                                                       \
        tutti_sym made = call;                                                                     \
        end(m, made, status, op, part, __LINE__);                                                  \
    } while (0)
#define WRONG(op, part, call) MISTAKE(TUTTI_INVALID, op, part, call)
#define ONE(op, count, attr) tutti_apply_op(m.graph, op, 1, &m.x, count, attr)
#define TWO(a, b, count, attr) tutti_apply_op(m.graph, rows, 2, (tutti_sym[]){a, b}, count, attr)

static void check_mistakes(void)
{
    const char *swish = "acme.cubic_swish", *rows = "acme.weighted_rows", *none = "acme.no_such";
    tutti_attr power = TUTTI_INT("power", 2), real = TUTTI_FLOAT("power", 2);
    tutti_attr beta = TUTTI_FLOAT("beta", 2);
    WRONG(swish, "alpha is -1, must be 0 or more", acme_swish(m.x, -1));
    WRONG(swish, "x is i64[4,3], needs floats", acme_swish(m.counts, 1));
    WRONG(rows, "x is f32[4], weight is f32[4]", acme_rows(m.column, m.column, 2));
    WRONG(rows, "weight is f32[4,3]; needs x [rows, columns]", TWO(m.column, m.x, 1, &power));
    WRONG(rows, "power is 9, must be 1 to 8", acme_rows(m.x, m.column, 9));
    WRONG(rows, "needs attribute 'power'", TWO(m.x, m.column, 0, NULL));
    WRONG(rows, "'power' is given as float, needs int", TWO(m.x, m.column, 1, &real));
    WRONG(swish, "no attribute 'beta'; it takes alpha", ONE(swish, 1, &beta));
    WRONG(rows, "has 1 inputs, needs 2", ONE(rows, 1, &power));
    MISTAKE(TUTTI_NOT_FOUND, none, "there is no operator", ONE(none, 0, NULL));
}

/* A shape that is wrong only once it is fed is found then, and names the line that built the node.
 */
static void check_late_mistake(void)
{
    tutti_graph *g = NULL;
    tutti_session *session = NULL;
    char place[64];
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 3),
              w = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY);
    snprintf(place, sizeof place, "%s:%d", __FILE__, __LINE__ + 1);
    tutti_sym y = acme_rows(x, w, 2);
    CHECK_OK(tutti_graph_check(g));
    CHECK_OK(tutti_session_open(&session, g));
    tutti_tensor *a = check_tensor(2, (int64_t[]){4, 3}, 0, 1),
                 *b = check_tensor(1, (int64_t[]){5}, 0, 1), *value;
    CHECK(tutti_run(session, .feed = TUTTI_FEED({x, a}, {w, b}),
                    .fetch = TUTTI_FETCH({y, &value})) == TUTTI_INVALID);
    CHECK_SAYS("x has 4 rows, weight has 5");
    CHECK_SAYS("acme.weighted_rows");
    CHECK_SAYS(place);
    tutti_tensor_release(a);
    tutti_tensor_release(b);
    tutti_session_close(session);
    tutti_graph_destroy(g);
}

/* An operator without a gradient is no error to differentiate through where it says so: zero flows.
 */
static void check_no_gradient(void)
{
    tutti_graph *g = NULL;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 4);
    tutti_grad grad;
    tutti_gradients(tutti_sum(acme_positive(x)), 1, &x, &grad);
    CHECK_OK(tutti_graph_check(g));
    CHECK(!tutti_grad_ok(grad));
    tutti_graph_destroy(g);
}

int main(void)
{
    check_registering();
    check_refusals();
    check_samples();
    check_mistakes();
    check_late_mistake();
    check_no_gradient();
    return check_end();
}
