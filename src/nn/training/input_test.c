/* input_test.c: training of several processes that read apart: by file, by bytes, everything, or by
 * a function of their own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "data/test_folder.h"
#include "parallel/strategies/workers.h"
#include "tutti/tutti.h"

enum { FILES = 5, EXAMPLES = 43 };

typedef struct given {
    char names[FILES][160];
    const char *paths[FILES];
    int64_t expected; /* examples of an epoch */
    double loss;      /* on one device, before training */
} given;

/* 43 lines in files of 1, 2, 8, 14 and 18. */
static void write_files(test_folder *folder, given *g)
{
    static const int lines[FILES] = {1, 2, 8, 14, 18};
    for (int f = 0, at = 0; f < FILES; f++) {
        char text[4096], name[16];
        int used = 0;
        for (int i = 0; i < lines[f]; i++, at++)
            used += snprintf(text + used, sizeof text - (size_t)used, "%d\n", at);
        snprintf(name, sizeof name, "%d.txt", f);
        strcpy(g->names[f], test_folder_write(folder, name, text, (size_t)used));
        g->paths[f] = g->names[f];
    }
}

/* A line's number n as x = [sin n, cos n], y = [sin 3n]. */
static tutti_status parse(void *context, tutti_element *element)
{
    char text[16] = "";
    tutti_tensor *x, *y;
    tutti_string line = tutti_tensor_get_string(element->tensors[0], 0);
    (void)context;
    memcpy(text, line.data, (size_t)line.size);
    double n = atoi(text);
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2}, &x));
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){1}, &y));
    tutti_tensor_set(x, 0, sin(n));
    tutti_tensor_set(x, 1, cos(n));
    tutti_tensor_set(y, 0, sin(3 * n));
    TUTTI_TRY(tutti_element_set(element, 0, x));
    return tutti_element_set(element, 1, y);
}

static tutti_dataset *lines_of(tutti_job *job, const given *g)
{
    return tutti_map(tutti_text_files(job, NULL, .count = FILES, .paths = g->paths), parse);
}

static tutti_model *model_of(tutti_job *job)
{
    tutti_model *m =
        tutti_sequential(job, tutti_dense(3, .activation = TUTTI_TANH), tutti_dense(1));
    tutti_compile(m, .optimizer = tutti_sgd(0.05), .loss = tutti_mse());
    return m;
}

typedef struct counting {
    int64_t examples;
} counting;

static void count(void *self, tutti_event *event)
{
    ((counting *)self)->examples = event->examples;
}

/* All processes have the same weights. */
static tutti_status check_equal(tutti_strategy *s, tutti_model *m)
{
    tutti_weight_info info;
    for (int i = 0; tutti_weight_at(m, i, &info) == TUTTI_OK; i++) {
        tutti_tensor *value;
        float most[8], least[8];
        TUTTI_TRY(tutti_get_weight(m, info.name, &value));
        int64_t size = tutti_tensor_count(value);
        for (int64_t k = 0; k < size; k++)
            most[k] = least[k] = (float)tutti_tensor_get(value, k);
        tutti_tensor_release(value);
        TUTTI_TRY(tutti_comm_all_reduce(s->axis_group->world, most, most, size, TUTTI_F32,
                                        TUTTI_MAX, NULL));
        TUTTI_TRY(tutti_comm_all_reduce(s->axis_group->world, least, least, size, TUTTI_F32,
                                        TUTTI_MIN, NULL));
        for (int64_t k = 0; k < size; k++)
            WORKER_EXPECT(most[k] == least[k] && isfinite(most[k]));
    }
    return TUTTI_OK;
}

static tutti_status train(tutti_strategy *s, tutti_job *job, tutti_dataset *data, const given *g,
                          bool exact)
{
    counting seen = {0};
    WORKER_EXPECT(data != NULL);
    TUTTI_WITH_STRATEGY(s)
    {
        tutti_logs logs;
        tutti_model *m = model_of(job);
        if (exact) { /* every example counts once, however many a process has */
            TUTTI_TRY(tutti_evaluate(m, data, &logs));
            WORKER_NEAR(tutti_logs_get(&logs, "loss"), g->loss);
        }
        const tutti_history *h = tutti_fit(
            m, data, .epochs = 2, .quiet = true,
            .callbacks = TUTTI_LIST(tutti_lambda_callback(.context = &seen, .epoch_end = count)));
        TUTTI_TRY(tutti_job_check(job));
        WORKER_NEAR((double)seen.examples, (double)g->expected);
        WORKER_EXPECT(tutti_history_get(h, "loss", 1) < tutti_history_get(h, "loss", 0));
        TUTTI_TRY(check_equal(s, m));
    }
    return TUTTI_OK;
}

/* What a step will take is asked of the rows that each process has, too. */
static tutti_status by_policy(tutti_strategy *s, void *context)
{
    int argc = 3;
    char **argv = (char *[]){(char[]){"test"}, (char[]){"--set"}, (char[]){"forecast=on"}, NULL};
    tutti_job *job = tutti_open(&argc, &argv);
    const given *g = context;
    tutti_dataset *data = tutti_batch(lines_of(job, g), 7);
    TUTTI_TRY(train(s, job, data, g, s->options.shard != TUTTI_SHARD_OFF));
    return tutti_close(job) == 0 ? TUTTI_OK : TUTTI_CHECK_FAILED;
}

/* Worker r of three has the lines of the files r and r + 3 … */
static tutti_dataset *files_of(const tutti_input_context *c, void *user)
{
    void **both = user;
    const given *g = both[1];
    const char *paths[FILES];
    int found = 0;
    for (int i = c->index; i < FILES; i += c->pipelines)
        paths[found++] = g->paths[i];
    return tutti_batch(
        tutti_map(tutti_text_files(both[0], NULL, .count = found, .paths = paths), parse),
        tutti_input_batch_size(c, 7));
}

static tutti_status by_function(tutti_strategy *s, void *context)
{
    tutti_job *job = tutti_open(NULL, NULL);
    void *both[] = {job, context};
    tutti_dataset *data = tutti_distribute_from_function(s, files_of, both);
    WORKER_EXPECT(tutti_shuffle(data, 4) == NULL || tutti_strategy_workers(s) == 1);
    WORKER_EXPECT(strstr(tutti_error_message(), "inside the function") != NULL);
    tutti_close(job);
    both[0] = job = tutti_open(NULL, NULL);
    data = tutti_distribute_from_function(s, files_of, both);
    TUTTI_TRY(train(s, job, tutti_prefetch(data, 2), context, true));
    return tutti_close(job) == 0 ? TUTTI_OK : TUTTI_CHECK_FAILED;
}

static void prepare(test_folder *folder, given *g)
{
    *g = (given){.expected = EXAMPLES};
    CHECK_OK(tutti__param_set("THREADS", "1")); /* a lock that one holds while processes are forked
                                                   would never open in them */
    test_folder_make(folder);
    write_files(folder, g);
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_logs logs;
    CHECK_OK(tutti_evaluate(model_of(job), tutti_batch(lines_of(job, g), 7), &logs));
    g->loss = tutti_logs_get(&logs, "loss");
    CHECK_INT(tutti_close(job), 0);
}

static void check_policy(int workers, tutti_shard_policy policy, int64_t examples)
{
    test_folder folder;
    given g;
    tutti_strategy_options options = {.struct_size = sizeof options, .shard = policy};
    prepare(&folder, &g);
    g.expected = examples;
    tutti__test_workers(workers, &options, by_policy, &g);
    test_folder_remove(&folder);
}

TUTTI_TEST(fit_by_file)
{
    CHECK_OK(tutti__param_set("DEVICE",
                              "cpu:0")); /* the threads of test devices do not outlive a fork */
    check_policy(3, TUTTI_SHARD_FILE, EXAMPLES);
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

/* The first worker has one line, and in the first step fewer rows than its share of a batch. */
TUTTI_TEST(fit_by_file_where_the_first_step_is_uneven)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0"));
    check_policy(5, TUTTI_SHARD_FILE, EXAMPLES);
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

TUTTI_TEST(fit_by_bytes)
{
    CHECK_OK(tutti__param_set("DEVICE",
                              "cpu:0")); /* the threads of test devices do not outlive a fork */
    check_policy(2, TUTTI_SHARD_BYTES, EXAMPLES);
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

TUTTI_TEST(fit_of_everything_everywhere)
{
    CHECK_OK(tutti__param_set("DEVICE",
                              "cpu:0")); /* the threads of test devices do not outlive a fork */
    check_policy(2, TUTTI_SHARD_OFF, 2 * EXAMPLES);
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

TUTTI_TEST(fit_by_a_function_of_each_process)
{
    CHECK_OK(tutti__param_set("DEVICE",
                              "cpu:0")); /* the threads of test devices do not outlive a fork */
    test_folder folder;
    given g;
    prepare(&folder, &g);
    tutti__test_workers(2, NULL, by_function, &g);
    test_folder_remove(&folder);
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

/* ---- a process without any elements, whose types nobody has said ---- */

typedef struct counter {
    int64_t at, end;
} counter;

static tutti_status next_number(void *context, tutti_element *element)
{
    counter *c = context;
    tutti_tensor *x, *y;
    if (c->at >= c->end)
        return TUTTI_OK;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2}, &x));
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){1}, &y));
    tutti_tensor_set(x, 0, (double)c->at);
    tutti_tensor_set(x, 1, 1);
    tutti_tensor_set(y, 0, 2.0 * (double)c->at++);
    TUTTI_TRY(tutti_element_set(element, 0, x));
    return tutti_element_set(element, 1, y);
}

static tutti_status begin_numbers(void *context, uint64_t epoch)
{
    (void)epoch;
    ((counter *)context)->at = 0;
    return TUTTI_OK;
}

static tutti_dataset *numbers(tutti_job *job, counter *c, int64_t batch)
{
    tutti_generator generator = {.next = next_number, .reset = begin_numbers, .context = c};
    return tutti_batch(tutti_from_generator(job, &generator), batch);
}

typedef struct has {
    tutti_job *job;
    counter numbers;
} has;

static tutti_dataset *numbers_of_the_last(const tutti_input_context *c, void *user)
{
    has *h = user;
    h->numbers.end = c->index + 1 == c->pipelines ? h->numbers.end : 0;
    return numbers(h->job, &h->numbers, 4);
}

static tutti_status fit_without(tutti_strategy *s, void *context)
{
    int64_t end = *(const int64_t *)context;
    has h = {.job = tutti_open(NULL, NULL), .numbers = {.end = end}};
    tutti_status status = TUTTI_OK;
    TUTTI_WITH_STRATEGY(s)
    {
        tutti_model *m = tutti_sequential(h.job, tutti_dense(1)); /* no shape is said here, too */
        tutti_compile(m, .optimizer = tutti_sgd(0.01), .loss = tutti_mse());
        tutti_fit(m, tutti_distribute_from_function(s, numbers_of_the_last, &h), .epochs = 2,
                  .quiet = true);
        status = tutti_job_check(h.job);
        if (status == TUTTI_OK && tutti_model_steps(m) != 4)
            status = tutti_fail(TUTTI_CHECK_FAILED, "%d steps", (int)tutti_model_steps(m));
    }
    bool told = strstr(tutti_error_message(), "no elements in any of 2 processes") != NULL;
    tutti_close(h.job);
    return end > 0 ? status : status != TUTTI_OK && told ? TUTTI_OK : TUTTI_CHECK_FAILED;
}

TUTTI_TEST(a_process_without_elements_learns_from_the_others_what_they_are)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0"));
    CHECK_OK(tutti__param_set("THREADS", "1"));
    for (int64_t end = 0; end <= 7; end += 7)
        tutti__test_workers(2, NULL, fit_without, &end);
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

/* ---- going on ---- */

/* A training of two epochs that saves itself after `at` steps, or goes on from there. */
typedef struct journey {
    given g;
    bool function, resumes;
    int64_t at;
    int ends; /* of epochs that are told */
    char checkpoint[160], weights[160];
} journey;

typedef struct watching {
    const journey *journey;
    counting seen;
    int ends;
} watching;

static void save_there(void *self, tutti_event *event)
{
    const journey *j = ((watching *)self)->journey;
    if (!j->resumes && event->step == j->at)
        tutti_save_checkpoint(event->model, j->checkpoint);
}

static void note_end(void *self, tutti_event *event)
{
    watching *w = self;
    w->seen.examples = event->examples;
    w->ends++;
    if (!w->journey->resumes && event->step == w->journey->at)
        tutti_save_checkpoint(event->model, w->journey->checkpoint);
}

/* The weights are those that the journey of before ended with. */
static tutti_status check_arrival(tutti_job *job, tutti_model *m, const char *weights)
{
    tutti_model *other = model_of(job);
    tutti_weight_info info;
    tutti_build(other, TUTTI_F32, 2);
    TUTTI_TRY(tutti_load_weights(other, weights));
    for (int i = 0; tutti_weight_at(m, i, &info) == TUTTI_OK; i++) {
        tutti_tensor *here, *there;
        TUTTI_TRY(tutti_get_weight(m, info.name, &here));
        TUTTI_TRY(tutti_get_weight(other, info.name, &there));
        bool same = tutti_tensor_same(here, there);
        tutti_tensor_release(here);
        tutti_tensor_release(there);
        WORKER_EXPECT(same);
    }
    return TUTTI_OK;
}

static tutti_status travel(tutti_strategy *s, void *context)
{
    const journey *j = context;
    tutti_job *job = tutti_open(NULL, NULL);
    void *both[] = {job, (void *)(uintptr_t)&j->g};
    watching w = {.journey = j};
    tutti_dataset *data = j->function ? tutti_distribute_from_function(s, files_of, both)
                                      : tutti_batch(lines_of(job, &j->g), 7);
    TUTTI_WITH_STRATEGY(s)
    {
        tutti_model *m = model_of(job);
        if (j->resumes)
            TUTTI_TRY(tutti_restore_checkpoint(m, j->checkpoint));
        tutti_fit(m, data, .epochs = 2, .quiet = true,
                  .callbacks =
                      TUTTI_LIST(tutti_lambda_callback(.context = &w, .batch_end = save_there,
                                                       .epoch_end = note_end)));
        TUTTI_TRY(tutti_job_check(job));
        if (!j->resumes)
            TUTTI_TRY(tutti_save_weights(m, j->weights));
        else if (j->weights[0])
            TUTTI_TRY(check_arrival(job, m, j->weights));
    }
    WORKER_NEAR(w.ends, j->resumes ? j->ends : 2);
    WORKER_NEAR((double)w.seen.examples, EXAMPLES);
    return tutti_close(job) == 0 ? TUTTI_OK : TUTTI_CHECK_FAILED;
}

static void check_journey(bool function, int before, int after, int64_t at, int ends)
{
    test_folder folder;
    journey j = {.function = function, .at = at, .ends = ends};
    tutti_strategy_options options = {.struct_size = sizeof options, .shard = TUTTI_SHARD_FILE};
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0"));
    prepare(&folder, &j.g);
    strcpy(j.checkpoint, test_folder_name(&folder, "checkpoint"));
    strcpy(j.weights, test_folder_name(&folder, "weights"));
    tutti__test_workers(before, &options, travel, &j);
    if (after != before)
        j.weights[0] = 0; /* other batches, other weights */
    j.resumes = true;
    tutti__test_workers(after, &options, travel, &j);
    test_folder_remove(&folder);
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

/* Rank 1 has fewer batches than rank 0, and its pipeline is another one. */
TUTTI_TEST(data_by_function_goes_on_to_the_same_bits)
{
    check_journey(true, 2, 2, 3, 2);
    check_journey(true, 2, 2, 7, 1);
}

/* Between epochs nothing is lost: the second has every example, and the first is over. */
TUTTI_TEST(data_by_function_goes_on_elsewhere_between_epochs)
{
    check_journey(true, 1, 3, 7, 1);
    check_journey(true, 3, 1, 10, 1);
}

/* Three processes had ten batches, of which eight are done; one has seven: the epoch is over. */
TUTTI_TEST(data_by_file_goes_on_elsewhere)
{
    check_journey(false, 3, 1, 8, 2);
    check_journey(true, 3, 1, 8, 2);
    check_journey(false, 1, 3, 7, 1);
}

/* ---- on the tape ---- */

/* Worker r has r + 1 examples of value r: gradients are those of all. One has none in the end. */
static tutti_status on_the_tape(tutti_strategy *s, void *context)
{
    int rank = tutti_strategy_rank(s), workers = tutti_strategy_workers(s);
    tutti_eager *e;
    double expected = 0;
    (void)context;
    TUTTI_TRY(tutti_eager_open(&e, .strategy = s));
    tutti_eager_own_rows(e, true);
    tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_zeros(1), .name = "w");
    for (int step = 0; step < 2; step++) {
        int64_t batch, rows = step == 0 ? rank + 1 : rank == 0 ? 0 : 2;
        double sum = 0, count = 0;
        for (int r = 0; r < workers; r++) {
            count += step == 0 ? r + 1 : r == 0 ? 0 : 2;
            sum += r * (step == 0 ? r + 1 : r == 0 ? 0 : 2);
        }
        tutti_tensor *x;
        TUTTI_TRY(tutti_strategy_agree(s, rows, &batch));
        TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, &rows, &x));
        for (int64_t i = 0; i < rows; i++)
            tutti_tensor_set(x, i, rank);
        TUTTI_STEP(e) {
            tutti_sym loss;
            tutti_grad grad;
            TUTTI_TAPE(tape, e)
                loss = tutti_mean(tutti_square(tutti_sub(w, tutti_eager_feed(e, x))));
            tutti_tape_gradients(&tape, loss, 1, &w, &grad);
            tutti_apply_gradients(tutti_sgd(0.25), 1, &w, &grad);
        }
        TUTTI_TRY(tutti_eager_check(e));
        expected -= 0.25 * 2 * (expected - sum / count);
        tutti_tensor *value;
        TUTTI_TRY(tutti_eager_get(e, w, &value));
        WORKER_NEAR(tutti_tensor_get(value, 0), expected);
        tutti_tensor_release(value);
        tutti_tensor_release(x);
    }
    tutti_eager_close(e);
    return TUTTI_OK;
}

TUTTI_TEST(the_tape_takes_rows_of_each_process)
{
    tutti__test_workers(3, NULL, on_the_tape, NULL);
}

/* ---- rows of other lengths ---- */

/* Batches of two sequences; the second one is longer. */
typedef struct sequences {
    int index, at;
    int unlike; /* the process whose second batch has yet another length, or -1 */
} sequences;

static tutti_status begin_sequences(void *context, uint64_t epoch)
{
    (void)epoch;
    ((sequences *)context)->at = 0;
    return TUTTI_OK;
}

/* The first process has two batches, the others one. */
static tutti_status next_sequences(void *context, tutti_element *ret)
{
    sequences *s = context;
    if (s->at == (s->index == 0 || s->unlike >= 0 ? 2 : 1))
        return TUTTI_OK;
    int64_t length = s->at == 0 ? 5 : s->index == s->unlike ? 9 : 7;
    tutti_tensor *x, *y;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 3, (int64_t[]){2, length, 3}, &x));
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){2, 1}, &y));
    s->at++;
    TUTTI_TRY(tutti_element_set(ret, 0, x));
    return tutti_element_set(ret, 1, y);
}

static tutti_dataset *sequences_of(const tutti_input_context *c, void *user)
{
    void **both = user;
    sequences *s = both[1];
    s->index = c->index;
    return tutti_from_generator(
        both[0],
        &(tutti_generator){.next = next_sequences, .reset = begin_sequences, .context = s});
}

static tutti_status train_on_sequences(tutti_strategy *strategy, void *context)
{
    tutti_job *job = tutti_open(NULL, NULL);
    sequences s = {.unlike = *(const int *)context};
    tutti_status status = TUTTI_OK;
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m =
            tutti_sequential(job, tutti_dense(4), tutti_global_average_pool1d(), tutti_dense(1));
        tutti_compile(m, .optimizer = tutti_sgd(0.1), .loss = tutti_mse());
        void *both[] = {job, &s};
        tutti_dataset *data = tutti_distribute_from_function(strategy, sequences_of, both);
        for (int i = 0; i < 2 && status == TUTTI_OK; i++) {
            tutti_fit(m, data, .epochs = 2, .quiet = true);
            status = tutti_job_check(job);
        }
    }
    const char *wrong = "process 0 has elements of f32[?,7,3], f32[?,1] and process 1 of "
                        "f32[?,9,3], f32[?,1]";
    bool told = status != TUTTI_OK && strstr(tutti_error_message(), wrong);
    if (s.unlike < 0)
        TUTTI_TRY(status);
    tutti_close(job);
    WORKER_EXPECT(s.unlike < 0 || told);
    return TUTTI_OK;
}

TUTTI_TEST(who_has_no_rows_follows_the_lengths_of_the_others)
{
    tutti__test_workers(3, NULL, train_on_sequences, &(int){-1});
}

TUTTI_TEST(rows_of_one_step_have_one_length)
{
    tutti__test_workers(2, NULL, train_on_sequences, &(int){1});
}
