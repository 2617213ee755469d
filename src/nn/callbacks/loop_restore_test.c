/* loop_restore_test.c: --resume of loops by hand: variables of strings, queues that were closed, on
 * this device or another, and what does not fit any more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "base/test.h"
#include "tutti/tutti.h"

enum { STEPS = 4, PUT = 7 };

/* A program, as it is now. */
typedef struct way {
    const char *device, *save;
    bool resume;
    int epochs;
    int64_t capacity;  /* of its queues */
    int64_t width;     /* of its variable */
    bool close;        /* its queues, when all is in */
    const char *words; /* after its last step; each step adds a letter */
    const char *complaint;
} way;

enum { QUEUES = 4 };

typedef struct program {
    tutti_job *job;
    tutti_graph *g;
    tutti_session *s;
    tutti_sym words, note, sum, x, put[QUEUES], close[QUEUES], step[QUEUES], size[QUEUES];
} program;

static tutti_job *open_job(const way *how)
{
    char epochs[16];
    snprintf(epochs, sizeof epochs, "%d", how->epochs);
    const char *list[] = {"p",        "--quiet", "--save",   how->save,
                          "--epochs", epochs,    "--resume", NULL};
    char *copy[8] = {0}, **argv = copy;
    int argc = how->resume ? 7 : 6;
    for (int i = 0; i < argc; i++)
        copy[i] = (char *)(uintptr_t)list[i];
    return tutti_open(&argc, &argv);
}

static void build(const way *how, program *p)
{
    tutti_tensor *words, *letter;
    const tutti_string first[2] = {{"", 0}, {"\0\xff", 2}}, next[2] = {{"a", 1}, {"", 0}};
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 1, (int64_t[]){2}, first, &words));
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 1, (int64_t[]){2}, next, &letter));
    p->words = tutti_variable(p->g, tutti_tensor_init(words), .name = "words",
                              .dtype = TUTTI_STRING, .not_trainable = true);
    p->note = tutti_assign(p->words, tutti_string_join("", p->words, tutti_constant(p->g, letter)));
    p->sum = tutti_variable(p->g, tutti_zeros(how->width), .name = "sum");
    p->x = tutti_placeholder(p->g, TUTTI_I64);
    const tutti_type type = TUTTI_TYPE(TUTTI_I64);
    tutti_sym queues[QUEUES] = {
        tutti_fifo_queue_named(p->g, "fifo", how->capacity, type),
        tutti_shuffle_queue_named(p->g, "shuffle", how->capacity, how->close, 7, type),
        tutti_priority_queue_named(p->g, "priority", how->capacity, type),
        tutti_padding_queue_named(p->g, "padding", how->capacity, type)};
    for (int i = 0; i < QUEUES; i++) {
        p->put[i] = i == 2 ? tutti_enqueue(queues[i], p->x, p->x) : tutti_enqueue(queues[i], p->x);
        p->close[i] = tutti_queue_close(queues[i], false);
        p->size[i] = tutti_queue_size(queues[i]);
        tutti_sym taken = tutti_cast(tutti_dequeue(queues[i]), TUTTI_F32);
        p->step[i] = tutti_assign_add(p->sum, tutti_broadcast_to(taken, how->width));
    }
    tutti_tensor_release(words);
    tutti_tensor_release(letter);
}

static void fill(const way *how, const program *p)
{
    for (int64_t i = 0; i < PUT; i++) {
        tutti_tensor *value;
        CHECK_OK(tutti_tensor_from(TUTTI_I64, 0, NULL, &i, &value));
        for (int k = 0; k < QUEUES; k++)
            CHECK_OK(tutti_run(p->s, .feed = TUTTI_FEED({p->x, value}), .target = p->put[k]));
        tutti_tensor_release(value);
    }
    for (int k = 0; how->close && k < QUEUES; k++)
        CHECK_OK(tutti_run(p->s, .target = p->close[k]));
}

/* Empty, and no more comes in or will. */
static void check_closed(const way *how, const program *p)
{
    tutti_tensor *value;
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 0, NULL, &value));
    for (int k = 0; k < QUEUES; k++) {
        CHECK_STATUS(tutti_run(p->s, .feed = TUTTI_FEED({p->x, value}), .target = p->put[k]),
                     how->close ? TUTTI_CLOSED : TUTTI_OK);
        if (!how->close)
            CHECK_OK(tutti_run(p->s, .target = p->step[k]));
        CHECK_STATUS(tutti_run(p->s, .target = p->step[k], .deadline_seconds = 0.01),
                     how->close ? TUTTI_CLOSED : TUTTI_DEADLINE);
    }
    tutti_tensor_release(value);
}

static void train(const way *how, program *p)
{
    CHECK_OK(tutti_run(p->s, .target = tutti_initialize_variables(p->g)));
    tutti_progress *progress = tutti_progress_open(p->job, 1, STEPS, .session = p->s);
    if (!tutti_job_ok(p->job))
        return;
    if (tutti_progress_steps(progress) == 0)
        fill(how, p);
    while (tutti_job_ok(p->job) && tutti_progress_epoch(progress))
        do {
            tutti_job_fail(p->job, tutti_run(p->s, .target = p->note));
            for (int k = 0; tutti_job_ok(p->job) && k < QUEUES; k++)
                if (tutti_progress_steps(progress) < PUT)
                    tutti_job_fail(p->job, tutti_run(p->s, .target = p->step[k]));
        } while (tutti_job_ok(p->job) && tutti_progress_step(progress, 1));
}

static void check_ended(const way *how, const program *p)
{
    tutti_tensor *value;
    CHECK_OK(tutti_session_get(p->s, p->words, &value));
    tutti_string letters = tutti_tensor_get_string(value, 0),
                 kept = tutti_tensor_get_string(value, 1);
    CHECK_INT(letters.size, (int64_t)strlen(how->words));
    CHECK(memcmp(letters.data, how->words, strlen(how->words)) == 0);
    CHECK(kept.size == 2 && memcmp(kept.data, "\0\xff", 2) == 0);
    tutti_tensor_release(value);
    if (how->epochs < 2)
        return;
    CHECK_OK(tutti_session_get(p->s, p->sum, &value));
    CHECK_NEAR(tutti_tensor_get(value, 0), QUEUES * PUT * 0.5 * (PUT - 1), 0);
    tutti_tensor_release(value);
    check_closed(how, p);
}

static void run(way how)
{
    program p = {.job = open_job(&how)};
    CHECK_OK(tutti_graph_create(&p.g));
    CHECK_OK(tutti_session_open(&p.s, p.g, .device = how.device, .deadline_seconds = 5));
    build(&how, &p);
    CHECK_OK(tutti_graph_check(p.g));
    train(&how, &p);
    CHECK_INT(tutti_job_ok(p.job), how.complaint == NULL);
    if (how.complaint) {
        CHECK_STATUS(tutti_job_check(p.job), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), how.complaint);
        CHECK_CONTAINS(tutti_error_message(), how.save);
        CHECK_CONTAINS(tutti_error_message(), ".checkpoint.safetensors: ");
        tutti__job_discard(p.job);
    } else {
        check_ended(&how, &p);
        CHECK_INT(tutti_close(p.job), 0);
    }
    tutti_session_close(p.s);
    tutti_graph_destroy(p.g);
}

static void check_way(const char *before, const char *after, bool close)
{
    char folder[] = "/tmp/tutti-loop-XXXXXX", path[64], command[128];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/x", folder);
    way how = {.device = before, .save = path, .epochs = 1, .capacity = 8, .width = 2};
    how.close = close;
    how.words = "aaaa";
    run(how);
    how.device = after;
    how.resume = true;
    how.epochs = 2;
    how.words = "aaaaaaaa";
    way other = how;
    other.capacity = 2;
    other.complaint = "queue 'fifo' is saved with 3 tuples, the program's has a capacity of 2";
    run(other);
    other = how;
    other.width = 3;
    other.complaint = "variable 'sum' is saved as f32[2], the program has f32[3]";
    run(other);
    run(how);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}

TUTTI_TEST(a_loop_keeps_strings_and_queues_that_were_closed)
{
    check_way("cpu:0", "cpu:0", true);
    check_way("cpu:0", "cpu:0", false);
}

TUTTI_TEST(a_loop_goes_on_with_strings_and_queues_on_another_device)
{
    check_way("cpu:0", "far:0", true);
    check_way("far:0", "cpu:0", true);
    check_way("far:0", "far:0", true);
    check_way("cpu:0", "far:0", false);
}
