/* loop_keep_test.c: loops written by hand that are cut off go on to the same bits. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/job.h"
#include "base/test.h"
#include "tutti/tutti.h"

enum { ROWS = 40, BATCH = 8, EPOCHS = 3, STEPS = EPOCHS * ROWS / BATCH };

/* How a loop is run. */
typedef struct way {
    bool tape; /* by TUTTI_EACH_BATCH and the tape, or by a session, tutti_next_batch, a queue */
    int interrupt; /* Ctrl-C comes in this step; 0: never */
    bool late;     /* behind it, before the next one has its batch */
    int fail;      /* this step of the tape fails; 0: none */
    bool building; /* when it is written down, not when it runs */
    bool every;    /* step is saved */
    const char *save;
    bool resume;
} way;

/* What is seen of it. */
typedef struct result {
    double loss, w[3];
    int64_t steps, first; /* done in all; the number that the first step of this run had */
    int code;             /* of tutti_close */
} result;

static tutti_job *open_job(const way *how)
{
    const char *list[] = {"p",        "--quiet", "--save",
                          how->save,  "--set",   how->every ? "save_every=1" : "save_every=0",
                          "--resume", NULL};
    char *copy[8] = {0}, **argv = copy;
    int argc = how->resume ? 7 : 6;
    for (int i = 0; i < argc; i++)
        copy[i] = (char *)list[i];
    return tutti_open(&argc, &argv);
}

static tutti_dataset *make_data(tutti_job *job)
{
    tutti_tensor *x, *y;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){ROWS, 3}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){ROWS, 1}, &y));
    for (int i = 0; i < 3 * ROWS; i++)
        tutti_tensor_set(x, i, sin(i * 1.7));
    for (int i = 0; i < ROWS; i++)
        tutti_tensor_set(y, i, cos(i * 0.9));
    tutti_dataset *data = tutti_batch(tutti_shuffle(tutti_from_tensor_slices(job, x, y), 0), BATCH);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return data;
}

/* (w x + noise - y)^2: the noise depends on the random counter. */
static tutti_sym loss_of(tutti_graph *g, tutti_sym w, tutti_sym x, tutti_sym y)
{
    tutti_sym noise = tutti_random_normal(g, 0, 1, TUTTI_TYPE(TUTTI_F32, BATCH, 1), .seed = 5);
    tutti_sym off = tutti_sub(tutti_add(tutti_matmul(x, w), noise), y);
    return tutti_mean(tutti_square(off));
}

static void read_weights(tutti_tensor *value, result *ret)
{
    for (int i = 0; i < 3; i++)
        ret->w[i] = tutti_tensor_get(value, i);
    tutti_tensor_release(value);
}

static bool end_step(const way *how, tutti_progress *p, double loss, result *ret)
{
    tutti_progress_mean(p, "loss", loss);
    ret->first = ret->first < 0 ? tutti_progress_steps(p) : ret->first;
    bool now = tutti_progress_steps(p) + 1 == how->interrupt;
    if (now && !how->late)
        raise(SIGINT);
    bool goes_on = tutti_progress_step(p, BATCH);
    if (now && how->late)
        raise(SIGINT);
    return goes_on;
}

/* A loss that cannot be. */
static tutti_sym spoil(bool building, tutti_sym loss)
{
    return building ? tutti_matmul(loss, loss)
                    : tutti_check_numerics(tutti_div(loss, 0), "on purpose");
}

static void run_tape(const way *how, tutti_job *job, result *ret)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_dataset *data = make_data(job);
    tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_glorot_uniform(3, 1), .name = "w");
    tutti_optimizer adam = tutti_adam(.learning_rate = 0.05);
    tutti_progress *p = tutti_progress_open(job, EPOCHS, tutti_cardinality(data), .eager = e);
    while (tutti_progress_epoch(p)) {
        TUTTI_EACH_BATCH(data, x, y) {
            double value = 0;
            TUTTI_STEP(e) {
                tutti_sym loss;
                TUTTI_TAPE(tape, e) {
                    loss = loss_of(tutti_eager_graph(e), w, tutti_eager_feed(e, x),
                                   tutti_eager_feed(e, y));
                    if (how->fail == tutti_progress_steps(p) + 1)
                        loss = spoil(how->building, loss);
                }
                tutti_grad grad;
                tutti_tape_gradients(&tape, loss, 1, &w, &grad);
                tutti_apply_gradients(adam, 1, &w, &grad);
                value = tutti_scalar_value(loss);
            }
            if (!end_step(how, p, value, ret))
                break;
        }
    }
    CHECK((tutti_eager_check(e) != TUTTI_OK) == (how->fail > 0)); /* it is still told */
    CHECK((tutti_job_check(job) != TUTTI_OK) == (how->fail > 0));
    ret->loss = tutti_progress_get(p, "loss");
    ret->steps = tutti_progress_steps(p);
    tutti_tensor *value;
    CHECK_OK(tutti_eager_get(e, w, &value));
    read_weights(value, ret);
    ret->code = tutti_close(job);
    tutti_eager_close(e);
}

/* Batches go through a queue, which always holds two more than were taken. */
static void run_session(const way *how, tutti_job *job, result *ret)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *bx, *by, *value;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g));
    tutti_dataset *data = make_data(job);
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, BATCH, 3),
              y = tutti_placeholder(g, TUTTI_F32, BATCH, 1);
    tutti_sym w = tutti_variable(g, tutti_glorot_uniform(3, 1), .name = "w");
    tutti_sym q =
        tutti_fifo_queue(g, 10, TUTTI_TYPE(TUTTI_F32, BATCH, 3), TUTTI_TYPE(TUTTI_F32, BATCH, 1));
    tutti_sym put = tutti_enqueue(q, x, y), arrived = tutti_queue_arrived(q),
              taken = tutti_dequeue(q);
    tutti_sym loss = loss_of(g, w, taken, tutti_sym_output(taken, 1));
    tutti_sym step = tutti_minimize(tutti_sgd(0.05, .momentum = 0.9), loss);
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    tutti_progress *p = tutti_progress_open(job, EPOCHS, 5, .session = s);
    while (tutti_progress_epoch(p)) {
        do {
            CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({arrived, &value})));
            int64_t there = tutti_tensor_get_int(value, 0);
            tutti_tensor_release(value);
            for (; there < tutti_progress_steps(p) + 3; there++) {
                CHECK_OK(tutti_next_batch(data, &bx, &by));
                CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, bx}, {y, by}), .target = put));
            }
            CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({loss, &value}), .target = step));
            ret->loss = tutti_tensor_get(value, 0);
            tutti_tensor_release(value);
        } while (end_step(how, p, ret->loss, ret));
    }
    ret->loss = tutti_progress_get(p, "loss");
    ret->steps = tutti_progress_steps(p);
    CHECK_OK(tutti_session_get(s, w, &value));
    read_weights(value, ret);
    ret->code = tutti_close(job);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* In a process of its own, which ends as after Ctrl-C; this one never has threads. */
static result run(way how)
{
    result ret = {.first = -1};
    int ends[2], status = -1;
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        if (how.fail > 0 && !freopen("/dev/null", "w", stderr))
            _exit(2);
        tutti_job *job = open_job(&how);
        (how.tape ? run_tape : run_session)(&how, job, &ret);
        _exit(write(ends[1], &ret, sizeof ret) == (ssize_t)sizeof ret ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
    CHECK(read(ends[0], &ret, sizeof ret) == (ssize_t)sizeof ret);
    CHECK_INT(ret.code, how.fail > 0);
    close(ends[0]);
    close(ends[1]);
    return ret;
}

static void check_same(const result *a, const result *b)
{
    CHECK_INT(a->steps, b->steps);
    CHECK_NEAR(a->loss, b->loss, 0);
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(a->w[i], b->w[i], 0);
}

static void check_way(bool tape)
{
    char folder[] = "/tmp/tutti-loop-XXXXXX", path[64], command[128];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/x", folder);
    result whole = run((way){.tape = tape, .save = path});
    CHECK_INT(whole.steps, STEPS);
    for (int cut = 1; cut <= STEPS; cut += 2) {
        result before = run((way){.tape = tape, .save = path, .interrupt = cut});
        CHECK_INT(before.steps, cut);
        result after = run((way){.tape = tape, .save = path, .resume = true});
        CHECK_INT(after.first, cut == STEPS ? -1 : cut);
        check_same(&after, &whole);
    }
    result over = run((way){.tape = tape, .save = path, .resume = true});
    CHECK_INT(over.first, -1); /* nothing is left to do */
    check_same(&over, &whole);
    for (int i = 0; i < 2; i++) { /* of the last checkpoints and of the weights */
        char previous[128];
        snprintf(previous, sizeof previous, "%s%s.safetensors.previous", path,
                 i ? "" : ".checkpoint");
        CHECK_INT(access(previous, F_OK), 0);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}

TUTTI_TEST(a_loop_with_the_tape_goes_on_to_the_same_bits)
{
    check_way(true);
}

TUTTI_TEST(a_loop_with_a_session_and_a_queue_goes_on_to_the_same_bits)
{
    check_way(false);
}

/* The rest of an epoch is not lost to a signal that only some of a step sees. */
TUTTI_TEST(a_loop_that_is_interrupted_between_steps_goes_on_to_the_same_bits)
{
    char folder[] = "/tmp/tutti-loop-XXXXXX", path[64], command[128];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/x", folder);
    result whole = run((way){.tape = true, .save = path});
    for (int cut = 1; cut < STEPS; cut += 2) {
        way how = {.tape = true, .save = path, .interrupt = cut, .late = true};
        int done = cut % (ROWS / BATCH) == 0 ? cut : cut + 1; /* an epoch's end, or the next step */
        CHECK_INT(run(how).steps, done);
        result after = run((way){.tape = true, .save = path, .resume = true});
        CHECK_INT(after.first, done);
        check_same(&after, &whole);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}

TUTTI_TEST(a_step_that_fails_is_not_counted_and_not_saved)
{
    char folder[] = "/tmp/tutti-loop-XXXXXX", path[64], command[128];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/x", folder);
    result whole = run((way){.tape = true, .save = path});
    for (int bad = 2; bad <= STEPS; bad += 3) { /* the last ones of epochs, and others */
        way how = {.tape = true, .save = path, .every = true, .fail = bad, .building = bad % 2};
        CHECK_INT(run(how).steps, bad - 1);
        result after = run((way){.tape = true, .save = path, .resume = true});
        CHECK_INT(after.first, bad - 1);
        check_same(&after, &whole);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}

TUTTI_TEST(a_loop_says_what_it_cannot_go_on_from)
{
    const char *list[] = {"p", "--quiet", "--resume", NULL};
    char *copy[4] = {0}, **argv = copy;
    int argc = 3;
    tutti_eager *e;
    for (int i = 0; i < argc; i++)
        copy[i] = (char *)list[i];
    tutti_job *job = tutti_open(&argc, &argv);
    CHECK_OK(tutti_eager_open(&e));
    tutti_progress *p = tutti_progress_open(job, 1, 1, .eager = e);
    CHECK(!tutti_progress_epoch(p));
    CHECK(tutti_job_check(job) == TUTTI_INVALID && strstr(tutti_error_message(), "--save FILE"));
    tutti__job_discard(job);
    tutti_eager_close(e);
}
