/* cond_test.c: branches: values, types, gradients, mistakes. */
#include <stdlib.h>

#include "ops/control/control.h"
#include "ops/state/testing.h"

/* square: x -> x^2 s; triple: x -> 3x (s unused). */
static void square(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                   void *context)
{
    ret[0] = tutti_mul(tutti_square(args[0]), args[1]);
}

static void triple(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                   void *context)
{
    ret[0] = tutti_mul(args[0], tutti_scalar(body, TUTTI_F64, 3));
}

typedef struct cond_case {
    tutti_graph *g;
    tutti_sym pred, x, s, y;
} cond_case;

static cond_case open_case(void)
{
    cond_case c = {.g = new_graph()};
    c.pred = tutti_placeholder(c.g, TUTTI_BOOL);
    c.x = tutti_placeholder(c.g, TUTTI_F64);
    c.s = tutti_placeholder(c.g, TUTTI_F64);
    c.y = tutti_cond(c.pred, square, triple, NULL, TUTTI_SYMS(c.x, c.s), 1, NULL);
    CHECK_OK(tutti_graph_check(c.g));
    return c;
}

static double value_of(const cond_case *c, tutti_sym sym, bool pred)
{
    tutti_tensor *p = SCALAR(TUTTI_BOOL, pred), *x = SCALAR(TUTTI_F64, 5),
                 *s = SCALAR(TUTTI_F64, 2);
    double value = fetch_element(sym, 0, FEEDS(FEED(c->pred, p), FEED(c->x, x), FEED(c->s, s)));
    tutti_tensor_release(p);
    tutti_tensor_release(x);
    tutti_tensor_release(s);
    return value;
}

TUTTI_TEST(cond_takes_one_branch)
{
    cond_case c = open_case();
    CHECK_NEAR(value_of(&c, c.y, true), 50, 0);
    CHECK_NEAR(value_of(&c, c.y, false), 15, 0);
    tutti_graph_destroy(c.g);
}

TUTTI_TEST(cond_has_gradients_of_every_order)
{
    cond_case c = open_case();
    tutti_sym dx = tutti_gradient(c.y, c.x), ds = tutti_gradient(c.y, c.s);
    tutti_sym dxx = tutti_gradient(dx, c.x), dxs = tutti_gradient(dx, c.s);
    CHECK_OK(tutti_graph_check(c.g));
    CHECK_NEAR(value_of(&c, dx, true), 20, 0);
    CHECK_NEAR(value_of(&c, dx, false), 3, 0);
    CHECK_NEAR(value_of(&c, ds, true), 25, 0);
    CHECK_NEAR(value_of(&c, ds, false), 0, 0);
    CHECK_NEAR(value_of(&c, dxx, true), 4, 0);
    CHECK_NEAR(value_of(&c, dxx, false), 0, 0);
    CHECK_NEAR(value_of(&c, dxs, true), 10, 0);
    tutti_graph_destroy(c.g);
}

static void gathers(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                    void *context)
{
    ret[0] = tutti_sum(tutti_gather(args[0], args[1], 0));
}

static void sums(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    ret[0] = tutti_sum(args[0]);
}

/* A variable is given as an argument; a gradient that is rows inside a branch comes out dense. */
TUTTI_TEST(cond_reads_variables_and_gathers_from_them)
{
    tutti_graph *g = new_graph();
    tutti_sym pred = tutti_placeholder(g, TUTTI_BOOL), at = tutti_placeholder(g, TUTTI_I64, 2);
    tutti_sym table = tutti_variable(g, tutti_zeros(3), .name = "table");
    tutti_sym y = tutti_cond(pred, gathers, sums, NULL, TUTTI_SYMS(table, at), 1, NULL);
    tutti_sym grad = tutti_gradient(y, table);
    tutti_tensor *yes = SCALAR(TUTTI_BOOL, 1), *indices = VECTOR(TUTTI_I64, 2, 2),
                 *state = VECTOR(TUTTI_F32, 1, 2, 3);
    tutti_tensor *value =
        fetch(grad, FEEDS(FEED(pred, yes), FEED(at, indices), FEED(table, state)));
    CHECK_VALUES(value, 0, 0, 0, 2);
    tutti_tensor_release(value);
    tutti_tensor_release(yes);
    tutti_tensor_release(indices);
    tutti_tensor_release(state);
    tutti_graph_destroy(g);
}

static void first_two(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                      void *context)
{
    ret[0] = tutti_slice_axis(args[0], 0, 0, 2);
    ret[1] = args[0];
}

static void all_of_it(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                      void *context)
{
    ret[0] = ret[1] = args[0];
}

TUTTI_TEST(cond_does_not_know_dimensions_that_differ)
{
    tutti_graph *g = new_graph();
    tutti_sym pred = tutti_placeholder(g, TUTTI_BOOL), x = tutti_placeholder(g, TUTTI_F32, 4),
              ys[2];
    tutti_cond(pred, first_two, all_of_it, NULL, TUTTI_SYMS(x), 2, ys);
    CHECK_OK(tutti_graph_check(g));
    CHECK_INT(tutti_sym_type(ys[0]).dims[0], TUTTI_ANY);
    CHECK_INT(tutti_sym_type(ys[1]).dims[0], 4);
    tutti_graph_destroy(g);
}

static void to_bool(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                    void *context)
{
    ret[0] = tutti_greater(args[0], args[1]);
}

static void forgets(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                    void *context)
{
}

static void uses_outside(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                         void *context)
{
    ret[0] = tutti_add(args[0], *(tutti_sym *)context);
}

static void broken(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                   void *context)
{
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_I32, 1));
}

static void makes_variable(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                           void *context)
{
    ret[0] = tutti_mul(args[0], tutti_get_variable(body, "w", tutti_full(2), .dtype = TUTTI_F64));
}

static void makes_placeholder(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                              void *context)
{
    ret[0] = tutti_mul(args[0], tutti_placeholder_named(body, "p", TUTTI_F64));
}

static void takes_twice(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                        void *context)
{
    ret[0] = tutti_add(args[1], tutti_parameter(body, 1, tutti_sym_type(args[1])));
}

static void writes(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                   void *context)
{
    ret[0] = tutti_assign(args[0], tutti_scalar(body, TUTTI_F64, 1));
}

static void meets(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    ret[0] = tutti_all_reduce(args[0], "batch", 2, TUTTI_SUM);
}

static void receives(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                     void *context)
{
    ret[0] = tutti_recv(body, "channel", "cpu:0", TUTTI_TYPE(TUTTI_F64));
}

static tutti_grad pass(tutti_sym forward, tutti_grad grad, void *context)
{
    (void)forward, (void)context;
    return grad;
}

static void hooks(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    ret[0] = tutti_square(args[0]);
    tutti_on_gradient(ret[0], pass, NULL);
}

static void expect(tutti_body_fn *then_fn, tutti_body_fn *else_fn, const char *part)
{
    tutti_graph *g = new_graph();
    tutti_sym pred = tutti_placeholder(g, TUTTI_BOOL), x = tutti_placeholder(g, TUTTI_F64), result;
    CHECK(!tutti_sym_ok(tutti_cond(pred, then_fn, else_fn, &x, TUTTI_SYMS(x, x), 1, &result)));
    CHECK(!tutti_sym_ok(result));
    check_mistake(g, TUTTI_INVALID, part);
}

TUTTI_TEST(cond_reports_mistakes_in_its_branches)
{
    expect(square, to_bool, "result 0 is f64[] in the then branch, bool[] in the else branch");
    expect(square, forgets, "cond, else branch: result 0 was not set");
    expect(uses_outside, square, "belongs to another graph");
    expect(broken, square, "cond, then branch: add");
    expect(square, NULL, "cond, else branch: no function is given");
    expect(makes_variable, square, "cond, then branch: variable 'cond/then/w'");
    expect(square, makes_variable, "make it outside, and give it as an argument");
    expect(makes_placeholder, square, "cond, then branch: placeholder 'cond/then/p' (");
    expect(square, makes_placeholder, "is made in the body; make it outside, and give it as an");
    expect(takes_twice, square, "has the index of 'parameter_1' (");
    expect(writes, square, "cond, then branch: assign 'cond/then/assign'");
    expect(square, writes, "bodies write no variables; return the new value and assign it outside");
    expect(meets, square, "cond, then branch: all_reduce 'cond/then/all_reduce'");
    expect(hooks, square, "cond, then branch: a gradient hook is set on square 'cond/then/square'");
    expect(square, hooks, "set it outside, on an argument or a result");
    expect(square, receives, "meets other devices, which a body cannot");
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F64);
    CHECK(!tutti_sym_ok(tutti_cond(x, square, triple, NULL, TUTTI_SYMS(x, x), 1, NULL)));
    check_mistake(g, TUTTI_INVALID, "(the condition) is f64[], needs a scalar bool");
}

TUTTI_TEST(bodies_take_symbols_only)
{
    for (int loops = 0; loops < 2; loops++) {
        tutti_graph *g = new_graph();
        tutti_sym x = tutti_placeholder(g, TUTTI_BOOL), none = TUTTI_NO_SYM;
        if (loops)
            tutti_while(square, square, NULL, TUTTI_SYMS(x, none), 0, NULL, NULL);
        else
            tutti_cond(x, square, square, NULL, TUTTI_SYMS(x, none), 1, NULL);
        check_mistake(g, TUTTI_INVALID,
                      loops ? "while: argument 1 is not a symbol"
                            : "cond: argument 1 is not a symbol");
    }
}

TUTTI_TEST(bodies_refuse_counts_below_zero)
{
    static const char *const parts[] = {"cond, then branch: -2 results are asked for",
                                        "cond: -1 arguments are announced",
                                        "while: -4 arguments are announced"};
    for (int i = 0; i < 3; i++) {
        tutti_graph *g = new_graph();
        tutti_sym x = tutti_placeholder(g, TUTTI_BOOL), args[] = {x, x, x, x};
        if (i == 2)
            tutti_while(square, square, NULL, 1, args, -4, args, NULL);
        else
            tutti_cond(x, square, square, NULL, i ? -1 : 4, args, i ? 1 : -2, NULL);
        check_mistake(g, TUTTI_INVALID, parts[i]);
    }
}

TUTTI_TEST(bodies_take_no_queues)
{
    for (int loops = 0; loops < 2; loops++) {
        tutti_graph *g = new_graph();
        tutti_sym x = tutti_placeholder(g, TUTTI_BOOL),
                  queue = tutti_fifo_queue(g, 2, TUTTI_TYPE(TUTTI_F64));
        if (loops)
            tutti_while(square, square, NULL, TUTTI_SYMS(x), TUTTI_SYMS(queue), NULL);
        else
            tutti_cond(x, square, square, NULL, TUTTI_SYMS(x, queue), 1, NULL);
        check_mistake(g, TUTTI_INVALID,
                      loops ? "while: 'queue' among its arguments is a queue"
                            : "cond: 'queue' among its arguments is a queue");
    }
}

TUTTI_TEST(cond_survives_serialisation)
{
    cond_case c = open_case(), read = {0};
    void *data = NULL;
    size_t size = 0;
    CHECK_OK(tutti_graph_serialize(c.g, &data, &size));
    CHECK_OK(tutti_graph_deserialize(data, size, &read.g));
    read.pred = tutti__sym(tutti_graph_find(read.g, c.pred.node->name), 0);
    read.x = tutti__sym(tutti_graph_find(read.g, c.x.node->name), 0);
    read.s = tutti__sym(tutti_graph_find(read.g, c.s.node->name), 0);
    read.y = tutti__sym(tutti_graph_find(read.g, c.y.node->name), 0);
    CHECK_NEAR(value_of(&read, read.y, true), 50, 0);
    CHECK_NEAR(value_of(&read, tutti_gradient(read.y, read.x), false), 3, 0);
    free(data);
    tutti_graph_destroy(read.g);
    tutti_graph_destroy(c.g);
}
