/* null_test.c: calls on what an earlier call failed to make, whose status nobody looked at: an
 * error or nothing, never a crash. */
#include <string.h>

#include "base/test.h"
#include "tutti/tutti.h"

TUTTI_TEST(given_no_session_or_tape)
{
    tutti_graph *graph;
    tutti_tensor *value = NULL;
    tutti_session_info info;
    char *text = NULL;
    CHECK_OK(tutti_graph_create(&graph));
    tutti_sym variable = tutti_variable(graph, tutti_zeros(2));
    CHECK_STATUS(tutti_session_get(NULL, variable, &value), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "session is NULL");
    CHECK_STATUS(tutti_session_set(NULL, variable, NULL), TUTTI_INVALID);
    CHECK_STATUS(tutti_session_print(NULL, &text), TUTTI_INVALID);
    CHECK_STATUS(tutti_mirrored_get(NULL, variable, 0, &value), TUTTI_INVALID);
    CHECK_INT(tutti_mirrored_count(NULL, variable), 0);
    tutti_session_describe(NULL, &info);
    CHECK_INT(info.runs, 0);
    CHECK(!tutti_sym_ok(tutti_eager_feed(NULL, NULL)));
    CHECK_STATUS(tutti_eager_step(NULL), TUTTI_INVALID);
    CHECK_STATUS(tutti_eager_check(NULL), TUTTI_INVALID);
    CHECK_STATUS(tutti_eager_get(NULL, variable, &value), TUTTI_INVALID);
    CHECK(tutti_eager_graph(NULL) == NULL);
    tutti_tape tape = tutti_tape_begin(NULL);
    tutti_grad grad;
    tutti_tape_watch(&tape, variable);
    tutti_tape_gradients(&tape, variable, 1, &variable, &grad);
    tutti_tape_end(&tape);
    CHECK(!tutti_grad_ok(grad));
    CHECK_INT(tutti_trainable_variables(NULL, 0, NULL), 0);
    tutti_graph_destroy(graph);
}

/* A graph of its own for each: the first mistake stays. */
static const char *mistake(tutti_sym (*make)(tutti_graph *graph))
{
    tutti_graph *graph;
    CHECK_OK(tutti_graph_create(&graph));
    CHECK(!tutti_sym_ok(make(graph)));
    CHECK_STATUS(tutti_graph_check(graph), TUTTI_INVALID);
    tutti_graph_destroy(graph);
    return tutti_error_message();
}

static tutti_sym enqueue_nothing(tutti_graph *graph)
{
    tutti_sym queue = tutti_fifo_queue(graph, 4, TUTTI_TYPE(TUTTI_F32), TUTTI_TYPE(TUTTI_F32));
    return (tutti_enqueue)(queue, 2, NULL);
}

static tutti_sym no_optimizer(tutti_graph *graph)
{
    tutti_sym weight = tutti_variable(graph, tutti_zeros(2));
    return tutti_minimize((tutti_optimizer){0}, tutti_sum(weight));
}

static tutti_sym pad_before_less_than_none(tutti_graph *graph)
{
    return tutti_pad(tutti_placeholder(graph, TUTTI_F32, 1), .before = {.count = -1});
}

static tutti_sym pad_after_less_than_none(tutti_graph *graph)
{
    return tutti_pad(tutti_placeholder(graph, TUTTI_F32, 1), .after = {.count = -1});
}

static tutti_sym less_than_no_pieces(tutti_graph *graph)
{
    tutti_sym x = tutti_placeholder(graph, TUTTI_F32, 1);
    return (tutti_split_like)(x, 0, -1, &x);
}

static tutti_sym numbered_labels(tutti_graph *graph)
{
    return tutti_einsum("i1->i", tutti_placeholder(graph, TUTTI_F32, 2, 3));
}

static tutti_sym gradients_to_nowhere(tutti_graph *graph)
{
    tutti_sym x = tutti_placeholder(graph, TUTTI_F32, 1);
    tutti_gradients(x, 1, &x, NULL);
    return TUTTI_NO_SYM;
}

TUTTI_TEST(given_numbers_and_labels_that_are_none)
{
    CHECK_CONTAINS(mistake(pad_before_less_than_none), "-1 paddings before and 0 after");
    CHECK_CONTAINS(mistake(pad_after_less_than_none), "0 paddings before and -1 after");
    CHECK_CONTAINS(mistake(less_than_no_pieces), "-1 pieces are asked for");
    CHECK_CONTAINS(mistake(numbered_labels), "holds '1' at position 1; labels are letters");
}

static tutti_sym enqueue_less_than_none(tutti_graph *graph)
{
    return (tutti_enqueue)(tutti_fifo_queue(graph, 4, TUTTI_TYPE(TUTTI_F32)), -1, NULL);
}

static tutti_sym enqueue_many_less_than_none(tutti_graph *graph)
{
    tutti_sym x = tutti_placeholder(graph, TUTTI_F32, 1);
    return (tutti_enqueue_many)(tutti_fifo_queue(graph, 4, TUTTI_TYPE(TUTTI_F32)), -1, &x);
}

static tutti_sym less_than_no_attributes(tutti_graph *graph)
{
    tutti_sym x = tutti_placeholder(graph, TUTTI_F32, 1);
    return (tutti_apply_op)(graph, "relu", 1, &x, -1, NULL);
}

static tutti_sym gradients_of_less_than_none(tutti_graph *graph)
{
    tutti_sym x = tutti_placeholder(graph, TUTTI_F32, 1);
    tutti_grad grad;
    tutti_gradients(x, -1, &x, &grad);
    return TUTTI_NO_SYM;
}

static tutti_sym gradients_of_nothing(tutti_graph *graph)
{
    tutti_sym x = tutti_placeholder(graph, TUTTI_F32, 1);
    return tutti_gradient(TUTTI_NO_SYM, x);
}

static tutti_sym gradients_without_tape(tutti_graph *graph)
{
    tutti_sym x = tutti_placeholder(graph, TUTTI_F32, 1);
    tutti_tape_gradients(NULL, x, 1, &x, NULL);
    return TUTTI_NO_SYM;
}

static tutti_sym gradients_of_no_context(tutti_graph *graph)
{
    tutti_sym x = tutti_placeholder(graph, TUTTI_F32, 1);
    tutti_tape tape = {0};
    tutti_grad grad;
    tutti_tape_gradients(&tape, x, 1, &x, &grad);
    return TUTTI_NO_SYM;
}

TUTTI_TEST(given_less_than_none)
{
    CHECK_CONTAINS(mistake(enqueue_less_than_none), "enqueue: takes 1 to 64 components, not -1");
    CHECK_CONTAINS(mistake(enqueue_many_less_than_none), "takes 1 to 64 components, not -1");
    CHECK_CONTAINS(mistake(less_than_no_attributes), "relu: 1 inputs and -1 attributes");
    CHECK_CONTAINS(mistake(gradients_of_less_than_none), "gradients: of -1 values");
    CHECK_CONTAINS(mistake(gradients_of_nothing), "y 0 is not a symbol");
    CHECK_CONTAINS(mistake(gradients_without_tape), "the tape is NULL; begin one with TUTTI_TAPE");
    CHECK_CONTAINS(mistake(gradients_of_no_context), "the tape is of no eager context");
}

static void refuse_target(tutti_graph *graph, tutti_sym target, const char *message)
{
    tutti_session *session;
    CHECK(!tutti_sym_ok(target));
    CHECK_CONTAINS(tutti_error_message(), message);
    CHECK_OK(tutti_graph_check(graph));
    CHECK_OK(tutti_session_open(&session, graph));
    CHECK_STATUS(tutti_run(session, .target = target), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "target 0 is no symbol; the call that should have made");
    CHECK_STATUS(tutti_run(session, .targets = TUTTI_TARGETS(target)), TUTTI_INVALID);
    tutti_session_close(session);
}

/* Such a list is not read, so no graph can hold the mistake: the run does. */
TUTTI_TEST(given_lists_of_none_make_no_target)
{
    tutti_graph *graph;
    CHECK_OK(tutti_graph_create(&graph));
    tutti_sym unset[1], weight = tutti_variable(graph, tutti_zeros(2));
    tutti_grad grad = {0};
    memset(unset, 0x5a, sizeof unset);
    refuse_target(graph, (tutti_apply_gradients)(tutti_sgd(0.1), -1, unset, &grad),
                  "apply_gradients: a list of -1 variables has none to move");
    refuse_target(graph, (tutti_apply_gradients)(tutti_sgd(0.1), 2, NULL, &grad),
                  "apply_gradients: the list of 2 variables is NULL");
    refuse_target(graph, tutti_concatenate(-1, unset), "concat: -1 inputs are given");
    refuse_target(graph, tutti_concatenate(0, NULL), "concat: 0 inputs are given");
    refuse_target(graph, tutti_concatenate(2, NULL), "concat: the list of 2 inputs is NULL");
    refuse_target(graph, tutti_stack(-1, unset), "stack: -1 inputs are given");
    refuse_target(graph, (tutti_string_join)("", -1, unset), "string_join: -1 inputs are given");
    refuse_target(graph, tutti_minimize(tutti_sgd(0.1), tutti_sum(tutti_stack(0, NULL))),
                  "stack: 0 inputs are given");
    tutti_assign(weight, tutti_concatenate(0, NULL));
    CHECK_STATUS(tutti_graph_check(graph), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "input 1 is not a symbol");
    tutti_graph_destroy(graph);
}

static void give_first(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                       void *context)
{
    ret[0] = args[0];
}

static tutti_sym enqueue_into_nothing(tutti_graph *graph)
{
    return tutti_enqueue(TUTTI_NO_SYM, tutti_placeholder(graph, TUTTI_F32));
}

static tutti_sym branch_on_nothing(tutti_graph *graph)
{
    tutti_sym x = tutti_placeholder(graph, TUTTI_F32);
    return tutti_cond(TUTTI_NO_SYM, give_first, give_first, NULL, TUTTI_SYMS(x), 1, NULL);
}

static tutti_sym loop_over_nothing(tutti_graph *graph)
{
    tutti_sym x = tutti_placeholder(graph, TUTTI_F32);
    return tutti_while(give_first, give_first, NULL, TUTTI_SYMS(TUTTI_NO_SYM), TUTTI_SYMS(x), NULL);
}

static tutti_sym split_nothing(tutti_graph *graph)
{
    return tutti_split_like(TUTTI_NO_SYM, 0, tutti_placeholder(graph, TUTTI_F32, 2));
}

/* What was never set has no graph that could hold the mistake: the run does. */
TUTTI_TEST(given_symbols_that_were_never_set_make_no_target)
{
    tutti_graph *graph;
    tutti_sym none = TUTTI_NO_SYM;
    const char *unset = "not a symbol (never set";
    CHECK_OK(tutti_graph_create(&graph));
    refuse_target(graph, tutti_neg(none), "neg: input 0 is not a symbol (never set");
    refuse_target(graph, tutti_neg(tutti_add(none, none)), "add: input 0 is not a symbol");
    refuse_target(graph, tutti_enqueue(none, none), unset);
    refuse_target(graph, tutti_dequeue(none), unset);
    refuse_target(graph, tutti_dequeue_many(none, 2), unset);
    refuse_target(graph, tutti_cond(none, give_first, give_first, NULL, 0, NULL, 1, NULL), unset);
    refuse_target(graph, tutti_while(give_first, give_first, NULL, 1, &none, 0, NULL, NULL), unset);
    refuse_target(graph, tutti_unstack(none, 0, 2), unset);
    refuse_target(graph, tutti_pad(none), unset);
    refuse_target(graph, tutti_slice_axis(none, 0, 0, 1), unset);
    refuse_target(graph, tutti_gather_elements(none, none, 0), unset);
    refuse_target(graph, tutti_random_shuffle(none), unset);
    refuse_target(graph, tutti_random_categorical(none, 1), unset);
    refuse_target(graph, tutti_nn_conv1d(none, none), unset);
    refuse_target(graph, tutti_split_like(none, 0, none), unset);
    refuse_target(graph, tutti_minimize(tutti_sgd(0.1), none), "minimize: input 0 is not a symbol");
    refuse_target(graph, tutti_no_op(NULL), "no_op: the graph is NULL");
    refuse_target(graph, tutti_scalar(NULL, TUTTI_F32, 1), "constant: the graph is NULL");
    refuse_target(graph, tutti_placeholder(NULL, TUTTI_F32), "placeholder: the graph is NULL");
    refuse_target(graph, tutti_initialize_variables(NULL), "the graph is NULL");
    tutti_graph_destroy(graph);
}

/* Where another argument has a graph, that one holds the mistake. */
TUTTI_TEST(given_symbols_that_were_never_set_beside_others)
{
    CHECK_CONTAINS(mistake(enqueue_into_nothing), "enqueue: the queue is not a symbol");
    CHECK_CONTAINS(mistake(branch_on_nothing), "cond: the condition is not a symbol");
    CHECK_CONTAINS(mistake(loop_over_nothing), "while: argument 0 is not a symbol");
    CHECK_CONTAINS(mistake(split_nothing), "input 0 is not a symbol");
}

TUTTI_TEST(given_lists_that_are_null)
{
    CHECK_CONTAINS(mistake(gradients_to_nowhere), "the list of 1 gradients to return is NULL");
    CHECK_CONTAINS(mistake(enqueue_nothing), "enqueue: the list of 2 components is NULL");
    CHECK_CONTAINS(mistake(no_optimizer), "the optimizer is empty");
    CHECK(!tutti_sym_ok(tutti_concatenate(2, NULL)));
    CHECK(!tutti_sym_ok(tutti_stack(2, NULL)));
    CHECK(!tutti_sym_ok((tutti_einsum)("ab,bc->ac", 2, NULL)));
    CHECK((tutti_zip)(2, NULL) == NULL);
}

TUTTI_TEST(given_no_place_for_a_result)
{
    const int64_t dims[] = {2, 2};
    const int order[] = {1, 0};
    tutti_graph *graph;
    tutti_session *session;
    tutti_tensor *x;
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_OK(tutti_session_open(&session, graph));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, dims, &x));
    const tutti_status statuses[] = {
        tutti_tensor_create(TUTTI_F32, 2, dims, NULL),
        tutti_tensor_from(TUTTI_F32, 2, dims, tutti_tensor_data(x), NULL),
        tutti_tensor_slice(x, 0, 0, 1, 1, NULL),
        tutti_tensor_permute(x, order, NULL),
        tutti_tensor_broadcast(x, 2, dims, NULL),
        tutti_tensor_reshape(x, 2, dims, NULL),
        tutti_tensor_contiguous(x, NULL),
        tutti_tensor_cast(x, TUTTI_I64, NULL),
        tutti_sparse_from_dense(x, NULL),
        tutti_take_rows(x, 1, (int64_t[]){0}, NULL),
        tutti_digits_draw(1, 0, 1, &x, NULL),
        tutti_digits_draw(1, 0, 1, NULL, &x),
        tutti_idx_load("unused", NULL),
        tutti_mnist_load(NULL, "test", 1, NULL, &x),
        tutti_graph_create(NULL),
        tutti_graph_serialize(graph, NULL, NULL),
        tutti_session_open_with(graph, NULL, NULL),
        tutti_session_print(session, NULL),
        tutti_eager_open_with(NULL, NULL),
        tutti_device_parse("cpu:0", NULL),
        tutti_dtype_parse("f32", NULL),
        tutti_optimizer_by_name("sgd", 0, NULL),
    };
    for (size_t i = 0; i < TUTTI_COUNT(statuses); i++)
        CHECK_STATUS(statuses[i], TUTTI_INVALID);
    tutti_session_describe(session, NULL);
    tutti_eager_describe(NULL, NULL);
    tutti_tensor_release(x);
    tutti_session_close(session);
    tutti_graph_destroy(graph);
}

TUTTI_TEST(given_an_argument_of_a_subgraph_is_not_run)
{
    tutti_graph *graph;
    tutti_session *session;
    tutti_tensor *value = NULL;
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_OK(tutti_session_open(&session, graph));
    tutti_sym lost = tutti_parameter(graph, 1, tutti_type_make(TUTTI_F32, 0, NULL));
    CHECK_STATUS(tutti_run(session, .fetch = TUTTI_FETCH({tutti_neg(lost), &value})),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "argument of a sub-graph");
    tutti_session_close(session);
    tutti_graph_destroy(graph);
}

TUTTI_TEST(given_no_file_row_or_cluster)
{
    tutti_named_tensors list = {0};
    tutti_tensor *value = NULL;
    tutti_comm *comm;
    CHECK_STATUS(tutti_npy_load(NULL, &value), TUTTI_INVALID);
    CHECK_STATUS(tutti_npy_save("unused", NULL), TUTTI_INVALID);
    CHECK_STATUS(tutti_png_save("unused", NULL), TUTTI_INVALID);
    CHECK_STATUS(tutti_safetensors_load(NULL, &list), TUTTI_INVALID);
    CHECK_STATUS(tutti_npz_save("unused", 1, NULL, false), TUTTI_INVALID);
    CHECK_STATUS(tutti_take_rows(NULL, 0, NULL, &value), TUTTI_INVALID);
    CHECK(tutti_named_tensors_find(NULL, "x") == NULL);
    CHECK_STATUS(tutti_comm_open(NULL, NULL, &comm), TUTTI_INVALID);
    CHECK_INT(tutti_comm_rank(NULL), -1);
    CHECK_STATUS(tutti_comm_barrier(NULL, NULL), TUTTI_INVALID);
    CHECK_INT(tutti_cluster_size(NULL), 0);
    CHECK(value == NULL);
}

static const char *after(tutti_job *job)
{
    CHECK(tutti_job_check(job) != TUTTI_OK);
    tutti_close(job);
    return tutti_error_message();
}

TUTTI_TEST(given_words_and_callbacks_that_are_none)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = tutti_sequential(job, tutti_dense(1));
    tutti_compile(model, .loss = tutti_mse(), .optimizer = tutti_sgd(0.1), .metrics = "acuracy");
    CHECK_CONTAINS(after(job), "there is no metric 'acuracy'; is 'accuracy' meant?");

    job = tutti_open(NULL, NULL);
    model = tutti_sequential(job, tutti_dense(1));
    tutti_compile(model, .loss = tutti_mse(), .optimizer = tutti_sgd(0.1));
    tutti_fit(model, tutti_batch(tutti_range_dataset(job, 0, 4, 1), 2), .quiet = true,
              .callbacks = TUTTI_LIST(tutti_csv_logger(NULL)));
    CHECK_CONTAINS(after(job), "a callback is NULL");

    job = tutti_open(NULL, NULL);
    model = tutti_functional(job, .name = "m");
    tutti_sym x = tutti_input(model, "x", 4);
    tutti_output(model, "y", tutti_call(tutti_layer_make("plus", NULL), x, x));
    const char *place = strstr(after(job), "null_test.c:");
    CHECK(place && !strstr(place + 1, "null_test.c:"));
}
