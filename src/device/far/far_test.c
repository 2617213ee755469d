/* far_test.c: far devices give cpu's bits whatever the delays, and notice what is wrong in a
 * program. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/params.h"
#include "base/test.h"
#include "base/world.h"
#include "device/cpu/gemm/tile.h"
#include "device/far/frame.h"
#include "device/far/suite.h"
#include "passes/pass.h"

TUTTI_TEST(far_trains_like_cpu)
{
    tutti__suite_trains("far:0", 0);
}
TUTTI_TEST(far_trains_cut_in_two)
{
    tutti__suite_trains_cut("far:0", "far:1", 0);
}
TUTTI_TEST(far_trains_cut_from_cpu)
{
    tutti__suite_trains_cut("cpu:0", "far:1", 0);
}
TUTTI_TEST(far_variables)
{
    tutti__suite_variables("far:0");
}
TUTTI_TEST(far_results)
{
    tutti__suite_results("far:0");
}
TUTTI_TEST(far_errors)
{
    tutti__suite_errors("far:0");
}
TUTTI_TEST(far_late)
{
    tutti__suite_delayed("far:0", "far:1");
    tutti__suite_delayed("far:0", "cpu:0");
    tutti__suite_delayed("cpu:0", "far:0");
}
TUTTI_TEST(far_control)
{
    tutti__suite_control("far:0", 0);
}
TUTTI_TEST(far_threads)
{
    tutti__suite_threads("far:0");
}
TUTTI_TEST(far_dynamic)
{
    tutti__suite_dynamic("far:0");
}
TUTTI_TEST(far_strings_and_queues)
{
    tutti__suite_strings_and_queues("far:0");
}
/* The suite itself must hold where nothing is special. */
TUTTI_TEST(suite_variables_on_cpu)
{
    tutti__suite_variables("cpu:0");
}
TUTTI_TEST(suite_results_on_cpu)
{
    tutti__suite_results("cpu:0");
}
TUTTI_TEST(suite_errors_on_cpu)
{
    tutti__suite_errors("cpu:0");
}
TUTTI_TEST(suite_control_on_cpu)
{
    tutti__suite_control("cpu:0", 0);
}
TUTTI_TEST(suite_threads_on_cpu)
{
    tutti__suite_threads("cpu:0");
}
TUTTI_TEST(suite_dynamic_on_cpu)
{
    tutti__suite_dynamic("cpu:0");
}
TUTTI_TEST(suite_strings_and_queues_on_cpu)
{
    tutti__suite_strings_and_queues("cpu:0");
}

/* ---- seeds ---- */

TUTTI_TEST(far_gives_the_same_bits_for_a_hundred_seeds)
{
    tutti_suite_network network;
    tutti_suite_trained here, there;
    tutti__suite_network_make("", "", &network);
    tutti__suite_train(&network, "cpu:0", 3, &here);
    for (int seed = 0; seed < (TUTTI_TEST_SANITIZED ? 10 : 100); seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        CHECK_OK(tutti__param_set("FAR_SEED", text));
        CHECK_OK(tutti__param_set("FAR_DELAY_US", seed % 10 == 9 ? "500" : "50"));
        tutti__suite_train(&network, "far:0", 3, &there);
        tutti__suite_compare(&there, &here, 0);
        tutti__suite_trained_free(&there);
    }
    tutti__suite_trained_free(&here);
    tutti__suite_network_free(&network);
}

TUTTI_TEST(far_refuses_seeds_and_delays_that_mean_nothing)
{
    static const char *const bad[][3] = {{"FAR_SEED", "many", "a whole number from 0 to"},
                                         {"FAR_SEED", "-1", "a whole number from 0 to"},
                                         {"FAR_DELAY_US", "1 ms", "from 0 to 60000000"},
                                         {"FAR_DELAY_US", "-5", "from 0 to 60000000"}};
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *out;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym v = tutti_variable(g, tutti_zeros(3), .name = "v"), y = tutti_exp(v);
    CHECK_OK(tutti_session_open(&s, g, .device = "far:0"));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    for (size_t i = 0; i < TUTTI_COUNT(bad); i++) {
        char text[64];
        snprintf(text, sizeof text, "TUTTI_%s is '%s', needs ", bad[i][0], bad[i][1]);
        CHECK_OK(tutti__param_set(bad[i][0], bad[i][1]));
        CHECK_STATUS(tutti_run(s, .fetch = TUTTI_FETCH({y, &out})), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), text);
        CHECK_CONTAINS(tutti_error_message(), bad[i][2]);
        CHECK_OK(tutti__param_set(bad[i][0], NULL));
    }
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({y, &out})));
    tutti_tensor_release(out);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* ---- programs by hand ---- */

static tutti_status begin(tutti_run *run, tutti_status status)
{
    run->id++; /* counts the calls */
    return status;
}

static void end(tutti_run *run)
{
    TUTTI_UNUSED(run);
}

/* Branches that join: every one of the three streams waits for the others. */
static void make_partition(tutti_partition *ret)
{
    tutti_graph *g, *piece;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 700, 3), at = x;
    for (int i = 0; i < 4; i++) {
        tutti_sym a = tutti_exp(at), b = tutti_sin(at), c = tutti_tanh(tutti_add(a, b));
        at = tutti_sub(tutti_mul(a, c), tutti_mul(b, c));
    }
    tutti_sym total = tutti_sum(at);
    CHECK_OK(tutti_graph_check(g));
    tutti_edge feed = tutti__edge(x), fetches[] = {tutti__edge(at), tutti__edge(total)};
    tutti_type type = tutti_sym_type(x);
    tutti_extract wanted = {
        .feed_count = 1, .fetch_count = 2, .feeds = &feed, .fetches = fetches, .feed_types = &type};
    CHECK_OK(tutti__graph_extract(g, &wanted, &piece));
    CHECK_OK(tutti__specialize(piece));
    *ret = (tutti_partition){.graph = piece};
    CHECK_OK(tutti__state_create(&ret->state));
    tutti_graph_destroy(g);
}

static void free_partition(tutti_partition *partition)
{
    tutti_graph_destroy(partition->graph);
    tutti__state_destroy(partition->state);
}

static tutti_status run_once(tutti_executable *executable, tutti_state *state, tutti_tensor **ret)
{
    tutti_tensor *input;
    tutti_run run = {.deadline = tutti__now_ns() + 20000000000,
                     .state = state,
                     .commit_begin = begin,
                     .commit_end = end};
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){700, 3}, &input));
    for (int i = 0; i < 2100; i++)
        tutti_tensor_set(input, i, 0.001 * i - 1);
    tutti_status status = executable->table->enqueue(executable, &run, &input, ret);
    tutti_tensor_release(input);
    CHECK_INT(run.id, 1);
    return status;
}

/* The signal that ends a child which runs the program, 0 when it ends by itself. */
static int run_in_child(tutti_executable *executable, tutti_state *state)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        tutti_tensor *results[2];
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGSEGV, SIG_DFL); /* a sanitizer may have put its own there */
        signal(SIGBUS, SIG_DFL);
        tutti_status status = run_once(executable, state, results);
        if (status == TUTTI_OK)
            tutti_tensor_data(results[0]); /* waits for the device */
        _exit(status == TUTTI_OK ? 0 : 1);
    }
    int status;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TUTTI_TEST(far_ends_a_kernel_that_did_not_await)
{
    tutti_partition partition;
    tutti_device *device;
    tutti_executable *executable;
    make_partition(&partition);
    CHECK_OK(
        tutti__device_open("far:77", &device)); /* one whose streams have not been started here */
    CHECK_OK(device->target->compile(device, &partition, &executable));
    tutti_program *program = tutti__far_program(executable);
    CHECK_INT(run_in_child(executable, partition.state), 0);
    int broken = 0;
    for (size_t i = 0; i < program->instruction_count; i++) {
        tutti_instruction *instruction = &program->instructions[i];
        int count = instruction->await_count;
        if (count == 0)
            continue;
        instruction->await_count = 0;
        CHECK_INT(run_in_child(executable, partition.state), SIGSEGV);
        instruction->await_count = count;
        broken++;
    }
    CHECK(broken >= 5);
    executable->table->destroy(executable);
    free_partition(&partition);
}

TUTTI_TEST(far_refuses_memory_that_is_given_away_too_early)
{
    tutti_partition partition;
    tutti_device *device;
    tutti_program *program;
    tutti_far_layout layout = {0};
    make_partition(&partition);
    CHECK_OK(tutti__device_open("far:0", &device));
    CHECK_OK(tutti__program_create(device, &partition, &program));
    CHECK_OK(tutti__far_layout_make(program, &layout));
    tutti__far_layout_free(&layout);
    for (size_t i = 0; i < program->value_count; i++)
        program->values[i].offset = 0;
    layout = (tutti_far_layout){0};
    CHECK_STATUS(tutti__far_layout_make(program, &layout), TUTTI_INTERNAL);
    CHECK_CONTAINS(tutti_error_message(), "the memory plan is wrong");
    tutti__far_layout_free(&layout);
    tutti__program_destroy(program);
    free_partition(&partition);
}

TUTTI_TEST(far_leaves_nothing_behind)
{
    tutti_partition partition;
    tutti_device *any, device = {.index = 5, .name = "far:5"};
    tutti_executable *executable;
    tutti_tensor *first[2], *again[2];
    make_partition(&partition);
    CHECK_OK(tutti__device_open("far:0", &any));
    device.target = any->target;
    CHECK_OK(device.target->open(&device));
    CHECK_OK(device.target->compile(&device, &partition, &executable));
    CHECK_OK(run_once(executable, partition.state, first));
    for (int i = 0; i < 20; i++) {
        CHECK_OK(run_once(executable, partition.state, again));
        for (int k = 0; k < 2; k++) {
            CHECK(tutti_tensor_same(first[k], again[k]));
            tutti_tensor_release(again[k]);
        }
    }
    executable->table->destroy(executable);
    CHECK(((tutti_far_device *)device.self)->memory->regions == NULL);
    device.target->close(&device);
    tutti_tensor_release(first[0]);
    tutti_tensor_release(first[1]);
    free_partition(&partition);
}

/* ---- waiting ---- */

/* far:0 fails while far:1 waits for it, and the run ends at once. */
TUTTI_TEST(far_failure_reaches_the_other_devices)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *bad, *out;
    tutti_sym there = TUTTI_NO_SYM, back = TUTTI_NO_SYM;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32);
    TUTTI_WITH_DEVICE(g, "far:1")
        there = tutti_exp(tutti_check_numerics(x, "on far:1"));
    TUTTI_WITH_DEVICE(g, "far:0")
        back = tutti_sum(tutti_mul(there, 2));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){__builtin_nanf("")}, &bad));
    CHECK_OK(tutti_session_open(&s, g, .device = "far:0", .deadline_seconds = 50));
    int64_t start = tutti__now_ns();
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, bad}), .fetch = TUTTI_FETCH({back, &out})),
                 TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), "on far:1");
    CHECK(tutti__now_ns() - start < 20000000000);
    tutti_tensor_release(bad);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(far_keeps_the_deadline)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *out, *value;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2);
    tutti_sym queue = tutti_fifo_queue(g, 2, TUTTI_TYPE(TUTTI_F32, 2)),
              put = tutti_enqueue(queue, x);
    tutti_sym taken = tutti_mul(tutti_dequeue(queue), 3), sum = tutti_sum(tutti_exp(taken));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){2}, (float[]){1, 2}, &value));
    CHECK_OK(tutti_session_open(&s, g, .device = "far:0"));
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(tutti_run(s, .fetch = TUTTI_FETCH({sum, &out}), .deadline_seconds = 0.05),
                     TUTTI_DEADLINE);
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, value}), .target = put));
        CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({taken, &out})));
        CHECK_NEAR(tutti_tensor_get(out, 1), 6, 0);
        tutti_tensor_release(out);
    }
    tutti_tensor_release(value);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* Sends and recvs that a user builds, the answer's recv before the question's send. */
TUTTI_TEST(far_carries_what_users_send)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *value, *out;
    tutti_sym question = TUTTI_NO_SYM, answer = TUTTI_NO_SYM, there = TUTTI_NO_SYM,
              back = TUTTI_NO_SYM, result = TUTTI_NO_SYM;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 3);
    TUTTI_WITH_DEVICE(g, "far:0")
        back = tutti_recv(g, "answer", "far:1", TUTTI_TYPE(TUTTI_F32, 3));
    TUTTI_WITH_DEVICE(g, "far:0") {
        tutti_sym half = tutti_relu(tutti_mul(x, 0.5));
        question = tutti_send(half, "question", "far:1");
        result = tutti_add(tutti_neg(half), back);
    }
    TUTTI_WITH_DEVICE(g, "far:1") {
        there = tutti_recv(g, "question", "far:0", TUTTI_TYPE(TUTTI_F32, 3));
        answer = tutti_send(tutti_square(there), "answer", "far:0");
    }
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){3}, (float[]){-2, 4, 6}, &value));
    CHECK_OK(tutti_session_open(&s, g, .device = "far:0", .deadline_seconds = 20));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, value}), .fetch = TUTTI_FETCH({result, &out}),
                       .targets = TUTTI_TARGETS(question, answer)));
    CHECK_NEAR(tutti_tensor_get(out, 0), 0, 0);
    CHECK_NEAR(tutti_tensor_get(out, 1), 2, 0);
    CHECK_NEAR(tutti_tensor_get(out, 2), 6, 0);
    tutti_tensor_release(out);
    tutti_tensor_release(value);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* A build for another CPU alone has no tiles of matrix products here; what asked for one crashed. A
 * build for every CPU has those of plain C. */
TUTTI_TEST(far_refuses_a_build_for_another_cpu)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *value, *out = NULL;
    CHECK_OK(tutti__param_set("ISA", "base"));
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){3, 3}, &value));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 3, 3), y = tutti_matmul(x, x);
    CHECK_OK(tutti_session_open(&s, g, .device = "far:0"));
    tutti_status status =
        tutti_run(s, .feed = TUTTI_FEED({x, value}), .fetch = TUTTI_FETCH({y, &out}));
    CHECK_STATUS(status, tutti__gemm_tile() ? TUTTI_OK : TUTTI_UNSUPPORTED);
    if (status != TUTTI_OK)
        CHECK_CONTAINS(tutti_error_message(), "configure it with -Dinstruction_sets=all");
    tutti_tensor_release(out);
    tutti_tensor_release(value);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
