/* users_ops_test.c: what a session makes of operators of users that do not do what they said. */
#include "base/test.h"
#include "tutti/tutti.h"

typedef enum fault { FORGETS, NO_DIMS, WRONG_RANK, WRONG_SIZE, BARE_STATUS, NONE } fault;
static fault now;

static tutti_status some_rows(tutti_infer *node)
{
    node->outputs[0] = tutti_type_make(node->inputs[0].dtype, 2, (int64_t[]){TUTTI_ANY, 3});
    return TUTTI_OK;
}

static tutti_status take_rows(const tutti_kernel_call *call)
{
    if (now == FORGETS)
        return TUTTI_OK;
    if (now == BARE_STATUS)
        return TUTTI_CLOSED;
    int rank = now == WRONG_RANK ? 1 : 2;
    int64_t dims[] = {2, now == WRONG_SIZE ? 4 : 3};
    tutti_status status = tutti_kernel_call_allocate(call, 0, rank, now == NO_DIMS ? NULL : dims);
    for (int64_t i = 0; status == TUTTI_OK && i < 6; i++)
        tutti_view_set(&call->outputs[0], i, (double)i);
    return status;
}

static const tutti_op rows_op = {.struct_size = sizeof(tutti_op),
                                 .name = "test.rows",
                                 .version = 1,
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .outputs = 1,
                                 .flags = TUTTI_OP_DYNAMIC | TUTTI_OP_FALLIBLE,
                                 .infer = some_rows,
                                 .reference = take_rows};

static void check_rows(const char *device)
{
    static const struct {
        fault fault;
        tutti_status status;
        const char *message;
    } cases[] = {
        {FORGETS, TUTTI_INVALID, "its kernel has not asked for the memory of output 0"},
        {NO_DIMS, TUTTI_INVALID, "asks for 2 dimensions, and the array of them is NULL"},
        {WRONG_RANK, TUTTI_INVALID, "output 0 is f32[2], its shape rule said f32[?,3]"},
        {WRONG_SIZE, TUTTI_INVALID, "output 0 is f32[2,4], its shape rule said f32[?,3]"},
        {BARE_STATUS, TUTTI_CLOSED, "it returned that status without a message"},
    };
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *in, *out;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32);
    tutti_sym rows = tutti_apply_op(g, "test.rows", 1, &x, 0, NULL), sum = tutti_sum(rows);
    CHECK_OK(tutti_session_open(&s, g, .device = device));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){3}, &in));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        now = cases[i].fault;
        tutti_fail(TUTTI_CLOSED, "of something long before");
        CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({sum, &out})),
                     cases[i].status);
        CHECK_CONTAINS(tutti_error_message(), cases[i].message);
        CHECK_CONTAINS(tutti_error_message(), "test.rows 'test.rows' (");
        CHECK_CONTAINS(tutti_error_message(), "users_ops_test.c:");
    }
    now = NONE;
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({sum, &out})));
    CHECK_NEAR(tutti_tensor_get(out, 0), 15, 0);
    tutti_tensor_release(out);
    tutti_tensor_release(in);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(users_kernels_of_unknown_shape_are_checked)
{
    (void)tutti_op_register(&rows_op);
    check_rows("cpu:0");
    check_rows("far:0");
    check_rows("whole:0");
}

static tutti_status copy_it(const tutti_kernel_call *call)
{
    tutti_view_set(&call->outputs[0], 0, tutti_view_get(&call->inputs[0], 0));
    return TUTTI_OK;
}

static tutti_status no_gradient(tutti_gradient_call *node)
{
    return now == BARE_STATUS
               ? TUTTI_UNSUPPORTED
               : tutti_fail(TUTTI_UNSUPPORTED, "%d inputs are too few", node->input_count);
}

static const tutti_op steep_op = {.struct_size = sizeof(tutti_op),
                                  .name = "test.steep",
                                  .version = 1,
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .outputs = 1,
                                  .infer = tutti_infer_same,
                                  .gradient = no_gradient,
                                  .reference = copy_it};

TUTTI_TEST(users_gradient_rules_that_fail_are_named)
{
    (void)tutti_op_register(&steep_op);
    for (int said = 0; said < 2; said++) {
        tutti_graph *g;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym x = tutti_placeholder(g, TUTTI_F32);
        now = said ? NONE : BARE_STATUS;
        tutti_gradient(tutti_apply_op(g, "test.steep", 1, &x, 0, NULL), x);
        CHECK_STATUS(tutti_graph_check(g), TUTTI_UNSUPPORTED);
        CHECK_CONTAINS(tutti_error_message(), "test.steep 'test.steep'");
        CHECK_CONTAINS(tutti_error_message(), "users_ops_test.c:");
        CHECK_CONTAINS(tutti_error_message(),
                       said ? "1 inputs are too few" : "the gradient rule failed: ");
        tutti_graph_destroy(g);
    }
    now = NONE;
}

static tutti_status refuse(const tutti_kernel_call *call)
{
    return tutti_fail(TUTTI_INVALID, "%s '%s': no", call->op->name, call->name);
}

/* It does not say that it may fail. */
static const tutti_op refuses_op = {.struct_size = sizeof(tutti_op),
                                    .name = "test.refuses",
                                    .version = 1,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .outputs = 1,
                                    .infer = tutti_infer_same,
                                    .reference = refuse};

static void check_kept(const char *device)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *value;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym w = tutti_variable(g, tutti_full(2, 3), .name = "w");
    tutti_sym update = tutti_assign(w, tutti_mul(w, 3)), after;
    TUTTI_WITH_CONTROL(g, update)
        after = tutti_apply_op(g, "test.refuses", 1, &w, 0, NULL);
    CHECK_OK(tutti_session_open(&s, g, .device = device));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_STATUS(tutti_run(s, .target = after), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "): no");
    CHECK_OK(tutti_session_get(s, w, &value));
    CHECK_NEAR(tutti_tensor_get(value, 0), 2, 0);
    tutti_tensor_release(value);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(users_kernels_that_fail_behind_an_update_leave_the_variable)
{
    (void)tutti_op_register(&refuses_op);
    check_kept("cpu:0");
    check_kept("far:0");
    check_kept("whole:0");
}

static tutti_status bare_rule(tutti_infer *node)
{
    (void)node;
    return TUTTI_UNSUPPORTED;
}

TUTTI_TEST(users_rules_that_fail_without_a_message_get_one)
{
    tutti_op op = refuses_op;
    op.name = "test.bare";
    op.version = 0;
    CHECK_STATUS(tutti_op_register(&op), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "'test.bare' is of version 0");
    op.version = 1;
    op.outputs = -9;
    CHECK_STATUS(tutti_op_register(&op), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "'test.bare': at least 1 inputs, at most 1, -9 outputs");
    static tutti_op bare;
    bare = refuses_op;
    bare.name = "test.bare";
    bare.infer = bare_rule;
    (void)tutti_op_register(&bare);
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32);
    tutti_fail(TUTTI_UNSUPPORTED, "of something long before");
    CHECK(!tutti_sym_ok(tutti_apply_op(g, "test.bare", 1, &x, 0, NULL)));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "the shape rule failed");
    tutti_graph_destroy(g);
}
