/* checkpoint_file_test.c: models in files: JSON, weights, checkpoints, damage, going on to the same
 * bits. */
#include "tutti/tutti.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/job.h"
#include "base/log.h"
#include "base/params.h"
#include "base/test.h"
#include "base/world.h"

static char folder[] = "/tmp/tutti-checkpoint-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[4][300];
    static int next;
    static bool made;
    if (!made)
        CHECK(mkdtemp(folder) != NULL);
    made = true;
    char *at = path[next++ % 4];
    snprintf(at, sizeof path[0], "%s/%s", folder, name);
    return at;
}

static void make_data(tutti_tensor **ret_x, tutti_tensor **ret_y)
{
    int64_t dims[] = {200, 6};
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, dims, ret_x));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, dims, ret_y));
    for (int64_t i = 0; i < 1200; i++)
        tutti_tensor_set(*ret_x, i, (double)((i * 7919) % 1000) / 500 - 1);
    for (int64_t i = 0; i < 200; i++)
        tutti_tensor_set_int(*ret_y, i, tutti_tensor_get(*ret_x, 6 * i) > 0);
}

static tutti_model *make_model(tutti_job *job)
{
    tutti_model *m = tutti_sequential(
        job, tutti_input_shape(6),
        tutti_dense(8, .activation = TUTTI_RELU, .kernel_regularizer = "l2(0.001)"),
        tutti_dropout(0.2), tutti_dense(2, .name = "out"));
    tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 0.01),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy");
    return m;
}

static tutti_dataset *make_dataset(tutti_job *job)
{
    tutti_tensor *x, *y;
    make_data(&x, &y);
    tutti_dataset *data = tutti_batch(tutti_shuffle(tutti_from_tensor_slices(job, x, y), 0), 16);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return data;
}

static void check_same_weights(tutti_model *a, tutti_model *b)
{
    tutti_weight_info info;
    CHECK_INT(tutti_weight_count(a), tutti_weight_count(b));
    for (int i = 0; i < tutti_weight_count(a); i++) {
        tutti_tensor *left, *right;
        CHECK_OK(tutti_weight_at(a, i, &info));
        CHECK_OK(tutti_get_weight(a, info.name, &left));
        CHECK_OK(tutti_get_weight(b, info.name, &right));
        CHECK(tutti_tensor_same(left, right));
        tutti_tensor_release(left);
        tutti_tensor_release(right);
    }
}

TUTTI_TEST(a_saved_model_is_the_same_model)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = make_dataset(job);
    tutti_model *m = make_model(job);
    tutti_fit(m, data, .epochs = 2, .quiet = true);
    CHECK_OK(tutti_job_check(job));
    CHECK_OK(tutti_save_model(m, path_of("model")));
    tutti_model *again = tutti_load_model(job, path_of("model"));
    CHECK_OK(tutti_job_check(job));
    check_same_weights(m, again);
    tutti_logs a, b;
    CHECK_OK(tutti_evaluate(m, data, &a));
    CHECK_OK(tutti_evaluate(again, data, &b)); /* it is compiled, too */
    CHECK_NEAR(tutti_logs_get(&a, "loss"), tutti_logs_get(&b, "loss"), 1e-7);
    CHECK_NEAR(tutti_logs_get(&a, "accuracy"), tutti_logs_get(&b, "accuracy"), 1e-9);
    char *first, *second;
    CHECK_OK(tutti_model_to_json(m, &first));
    CHECK_OK(tutti_model_to_json(again, &second));
    CHECK_STR(first, second);
    free(first);
    free(second);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(a_functional_model_survives_json)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_functional(job, .name = "two");
    tutti_sym a = tutti_input(m, "a", TUTTI_F32, 3), b = tutti_input(m, "b", TUTTI_F32, 3);
    tutti_layer *shared = tutti_dense(4);
    tutti_sym s = tutti_mul(tutti_call(shared, a), tutti_call(shared, b));
    tutti_output(m, "sum", tutti_sum(tutti_mul(s, 3), .axes = TUTTI_AXES(1)));
    tutti_output(m, "raw", s);
    char *first, *second;
    CHECK_OK(tutti_model_to_json(m, &first));
    tutti_model *again = tutti_model_from_json(job, first);
    CHECK_OK(tutti_job_check(job));
    CHECK_OK(tutti_model_to_json(again, &second));
    CHECK_STR(first, second);
    tutti_type types[] = {TUTTI_TYPE(TUTTI_F32, 3), TUTTI_TYPE(TUTTI_F32, 3)};
    CHECK_OK((tutti_build)(m, 2, types));
    CHECK_OK((tutti_build)(again, 2, types));
    check_same_weights(m, again); /* equal names and seed give equal weights */
    free(first);
    free(second);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(a_schedule_survives_json)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_sequential(job, tutti_input_shape(6), tutti_dense(2));
    tutti_compile(m, .loss = tutti_sparse_cross_entropy(.from_logits = true),
                  .optimizer =
                      tutti_adam(.schedule = tutti_piecewise(.boundaries = {10, 20},
                                                             .values = {0.1, 0.01, 0.001})));
    char *first, *second;
    CHECK_OK(tutti_model_to_json(m, &first));
    CHECK_CONTAINS(first, "piecewise");
    tutti_model *again = tutti_model_from_json(job, first);
    CHECK_OK(tutti_job_check(job));
    CHECK_OK(tutti_model_to_json(again, &second));
    CHECK_STR(first, second);
    free(first);
    free(second);
    CHECK_INT(tutti_close(job), 0);
}

/* Alone, and with the outputs' names before them. */
TUTTI_TEST(names_of_metrics_survive_json)
{
    for (int outputs = 1; outputs <= 2; outputs++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_model *m = tutti_functional(job);
        tutti_sym x = tutti_input(m, "x", TUTTI_F32, 3);
        tutti_output(m, "a", tutti_call(tutti_dense(1), x));
        tutti_metric off = tutti_mae_metric(.name = "a_off");
        if (outputs == 2)
            tutti_output(m, "b", tutti_call(tutti_dense(1), x));
        if (outputs == 1)
            tutti_compile(m, .loss = tutti_mse(), .metric_list = TUTTI_METRICS({"a", off}));
        else
            tutti_compile(m, .losses = TUTTI_LOSSES({"a", tutti_mse()}, {"b", tutti_mse()}),
                          .metric_list = TUTTI_METRICS({"a", off}, {"b", off}));
        char *first, *second;
        CHECK_OK(tutti_model_to_json(m, &first));
        CHECK_CONTAINS(first, outputs == 1 ? "\"a_off\"" : "\"b_a_off\"");
        tutti_model *again = tutti_model_from_json(job, first);
        CHECK_OK(tutti_job_check(job));
        CHECK_OK(tutti_model_to_json(again, &second));
        CHECK_STR(first, second);
        free(first);
        free(second);
        CHECK_INT(tutti_close(job), 0);
    }
}

/* Ends after `stop` batches. */
static tutti_status stop_at(void *self, tutti_event *event)
{
    if (event->step == *(int *)self)
        tutti_stop_training(event->model);
    return TUTTI_OK;
}
static const tutti_callback_kind stopper = {
    .struct_size = sizeof(tutti_callback_kind), .name = "stopper", .batch_end = stop_at};

TUTTI_TEST(training_goes_on_to_the_same_bits)
{
    for (int stop = 5; stop <= 26; stop += 21) { /* 13 batches an epoch: in the first, at the end */
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_dataset *data = make_dataset(job);
        tutti_model *reference = make_model(job), *half = make_model(job), *rest = make_model(job);
        tutti_fit(reference, data, .epochs = 3, .quiet = true);
        tutti_fit(half, data, .epochs = 3, .quiet = true,
                  .callbacks = TUTTI_LIST(tutti_callback_make(&stopper, &stop)));
        CHECK_INT(tutti_model_steps(half), stop);
        CHECK_OK(tutti_save_checkpoint_async(half, path_of("ckpt/at-{step}")));
        CHECK_OK(tutti_checkpoint_wait(half));
        char latest[300];
        CHECK_OK(tutti_latest_checkpoint(path_of("ckpt"), sizeof latest, latest));
        CHECK_OK(tutti_restore_checkpoint(rest, latest));
        CHECK_INT(tutti_model_steps(rest), stop);
        const tutti_history *h = tutti_fit(rest, data, .epochs = 3, .quiet = true);
        CHECK_OK(tutti_job_check(job));
        CHECK_INT(tutti_model_steps(rest), 39);
        CHECK(h != NULL);
        check_same_weights(reference, rest);
        CHECK_INT(tutti_close(job), 0);
    }
}

/* A variable of strings beside the model's weights. */
static tutti_sym make_words(tutti_model *m, const char *text)
{
    tutti_eager *e = tutti_model_eager(m);
    const tutti_string words[2] = {{text, (int64_t)strlen(text)}, {"\0\xff", 2}};
    tutti_tensor *value;
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 1, (int64_t[]){2}, words, &value));
    tutti_sym made = tutti_variable(tutti_eager_graph(e), tutti_tensor_init(value), .name = "words",
                                    .dtype = TUTTI_STRING, .not_trainable = true);
    CHECK_OK(tutti_eager_step(e));
    tutti_tensor_release(value);
    return made;
}

TUTTI_TEST(strings_beside_a_model_are_kept)
{
    for (int way = 0; way < 4; way++) { /* at once or meanwhile, in one file or several */
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_model *m = make_model(job), *again = make_model(job);
        tutti_tensor *words;
        make_words(m, "kept");
        if (way & 2)
            CHECK_OK(tutti__param_set("SHARD_BYTES", "1"));
        CHECK_OK(way & 1 ? tutti_save_checkpoint_async(m, path_of("words"))
                         : tutti_save_checkpoint(m, path_of("words")));
        CHECK_OK(tutti_checkpoint_wait(m));
        CHECK_OK(tutti__param_set("SHARD_BYTES", NULL));
        tutti_sym restored = make_words(again, "another");
        CHECK_OK(tutti_restore_checkpoint(again, path_of("words")));
        CHECK_OK(tutti_eager_get(tutti_model_eager(again), restored, &words));
        tutti_string first = tutti_tensor_get_string(words, 0),
                     second = tutti_tensor_get_string(words, 1);
        CHECK(first.size == 4 && memcmp(first.data, "kept", 4) == 0);
        CHECK(second.size == 2 && memcmp(second.data, "\0\xff", 2) == 0);
        tutti_tensor_release(words);
        CHECK_OK(tutti_job_check(job));
        CHECK_INT(tutti_close(job), 0);
    }
}

/* A training that is over runs no step that would make the running means. */
TUTTI_TEST(running_means_of_a_finished_training_can_be_swapped_in)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = make_dataset(job);
    tutti_model *m = make_model(job), *again = make_model(job);
    tutti_optimizer optimizer = tutti_adam(.learning_rate = 0.01, .ema_decay = 0.9);
    tutti_loss loss = tutti_sparse_cross_entropy(.from_logits = true);
    tutti_compile(m, .optimizer = optimizer, .loss = loss);
    tutti_compile(again, .optimizer = optimizer, .loss = loss);
    tutti_fit(m, data, .epochs = 2, .quiet = true);
    CHECK_OK(tutti_save_checkpoint(m, path_of("means")));
    CHECK_OK(tutti_restore_checkpoint(again, path_of("means")));
    tutti_fit(again, data, .epochs = 2, .quiet = true);
    CHECK_INT(tutti_model_steps(again), tutti_model_steps(m));
    CHECK_OK(tutti_swap_ema_weights(m));
    CHECK_OK(tutti_swap_ema_weights(again));
    check_same_weights(m, again);
    CHECK_OK(tutti_swap_ema_weights(again)); /* back, and on */
    tutti_fit(again, data, .epochs = 3, .quiet = true);
    CHECK_OK(tutti_job_check(job));
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(a_checkpoint_in_pieces_is_found_and_gone_on_from)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = make_dataset(job);
    tutti_model *m = make_model(job), *rest = make_model(job), *weights = make_model(job);
    CHECK_OK(tutti__param_set("SHARD_BYTES", "200"));
    for (int epoch = 1; epoch <= 3; epoch++) {
        tutti_fit(m, data, .epochs = epoch, .initial_epoch = epoch - 1, .quiet = true);
        CHECK_OK(tutti_save_checkpoint(m, path_of("pieces/same")));
        CHECK_OK(tutti_save_checkpoint(m, path_of("pieces/other-{epoch}")));
    }
    CHECK_OK(tutti__param_set("SHARD_BYTES", NULL));
    char latest[300];
    CHECK(access(path_of("pieces/same.safetensors.index.json.previous"), F_OK) == 0);
    CHECK(access(path_of("pieces/same.safetensors"), F_OK) != 0);
    CHECK_OK(tutti_latest_checkpoint(path_of("pieces"), sizeof latest, latest));
    CHECK_CONTAINS(latest, "index.json");
    CHECK_OK(tutti_restore_checkpoint(rest, latest));
    CHECK_INT(tutti_model_steps(rest), 39);
    check_same_weights(m, rest);
    CHECK_OK(tutti_build(weights, TUTTI_F32, 6));
    CHECK_OK(tutti_load_weights(weights, path_of("pieces/same")));
    check_same_weights(m, weights);
    CHECK_INT(tutti_close(job), 0);
}

static int warnings;
static void count_warnings(void *context, tutti_log_level level, const char *message)
{
    (void)context, (void)message;
    warnings += level == TUTTI_LOG_WARNING;
}

TUTTI_TEST(a_damaged_checkpoint_gives_way_to_the_one_before)
{
    const tutti_world *world = tutti__world();
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = make_dataset(job);
    tutti_model *m = make_model(job);
    tutti_fit(m, data, .epochs = 1, .quiet = true);
    CHECK_OK(tutti_save_checkpoint(m, path_of("damaged")));
    tutti_fit(m, data, .epochs = 2, .quiet = true);
    CHECK_OK(tutti_save_checkpoint(m, path_of("damaged")));
    void *bytes;
    size_t size;
    CHECK_OK(world->read_file(world->self, path_of("damaged.safetensors"), 1 << 24, &bytes, &size));
    for (size_t at = 3; at < size; at += size / 7) {
        tutti_model *other = make_model(job);
        ((char *)bytes)[at] ^= 4;
        CHECK_OK(world->write_file(world->self, path_of("damaged.safetensors"), bytes, size));
        ((char *)bytes)[at] ^= 4;
        warnings = 0;
        tutti_log_install(count_warnings, NULL);
        CHECK_OK(tutti_restore_checkpoint(other, path_of("damaged")));
        tutti_log_install(NULL, NULL);
        CHECK_INT(warnings, 1);
        CHECK_INT(tutti_model_steps(other), 13);
    }
    CHECK_OK(world->write_file(world->self, path_of("damaged.safetensors"), bytes, size / 2));
    CHECK_OK(world->write_file(world->self, path_of("damaged.safetensors.previous"), bytes, 100));
    CHECK_STATUS(tutti_restore_checkpoint(make_model(job), path_of("damaged")), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "damaged.safetensors");
    free(bytes);
    CHECK_INT(tutti_close(job), 1);
}

TUTTI_TEST(a_flipped_bit_of_the_models_json_is_damage)
{
    const tutti_world *world = tutti__world();
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = make_model(job);
    CHECK_OK(tutti_build(m, TUTTI_F32, 8));
    CHECK_OK(tutti_save_model(m, path_of("sum")));
    void *data;
    size_t size;
    CHECK_OK(world->read_file(world->self, path_of("sum.json"), 1 << 20, &data, &size));
    CHECK_INT(tutti_close(job), 0);
    char *text = data;
    for (size_t at = 0; at < size; at++) {
        job = tutti_open(NULL, NULL);
        text[at] ^= 1;
        CHECK(tutti_model_from_json(job, text) == NULL);
        text[at] ^= 1;
        tutti__job_discard(job);
    }
    job = tutti_open(NULL, NULL);
    CHECK(tutti_model_from_json(job, text) != NULL);
    CHECK_INT(tutti_close(job), 0);
    free(text);
}

TUTTI_TEST(that_the_checkpoint_before_is_used_is_said_on_stderr)
{
    const tutti_world *world = tutti__world();
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = make_model(job);
    CHECK_OK(tutti_build(m, TUTTI_F32, 8));
    CHECK_OK(tutti_save_checkpoint(m, path_of("told")));
    CHECK_OK(tutti_save_checkpoint(m, path_of("told")));
    CHECK_OK(world->write_file(world->self, path_of("told.safetensors"), "damage", 6));
    CHECK(freopen(path_of("told.err"), "w", stderr) != NULL);
    CHECK_OK(tutti_restore_checkpoint(m, path_of("told")));
    fflush(stderr);
    void *text;
    size_t size;
    CHECK_OK(world->read_file(world->self, path_of("told.err"), 1 << 20, &text, &size));
    CHECK_CONTAINS(text, "the generation before it is used instead");
    free(text);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(weights_load_partially_with_a_report)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = make_model(job);
    CHECK_OK(tutti_build(m, TUTTI_F32, 6));
    CHECK_OK(tutti_save_weights(m, path_of("some")));
    tutti_model *other = tutti_sequential(job, tutti_dense(8), tutti_dense(3, .name = "out"),
                                          tutti_dense(1, .name = "extra"));
    CHECK_OK(tutti_build(other, TUTTI_F32, 6));
    tutti_load_report report;
    CHECK_OK(tutti_load_weights(other, path_of("some"), .partial = true, .report = &report));
    CHECK_INT(report.loaded, 2);
    CHECK_INT(report.mismatched, 2);
    CHECK_INT(report.missing, 2);
    CHECK_INT(report.unused, 0);
    CHECK_CONTAINS(report.text, "extra/kernel");
    free(report.text);
    CHECK_STATUS(tutti_load_weights(other, path_of("some")), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "out/kernel");
    CHECK_INT(tutti_close(job), 1);
}

/* Nobody has to look at what these return. */
TUTTI_TEST(what_cannot_be_saved_or_loaded_is_the_error_of_the_job)
{
    for (int which = 0; which < 5; which++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_model *m = make_model(job);
        CHECK_OK(tutti_build(m, TUTTI_F32, 6));
        tutti_status status = which == 0   ? tutti_save_model(m, "/proc/nowhere/x")
                              : which == 1 ? tutti_save_weights(m, "/proc/nowhere/x")
                              : which == 2 ? tutti_save_checkpoint(m, "/proc/nowhere/x")
                              : which == 3 ? tutti_load_weights(m, "/proc/nowhere/x")
                                           : tutti_restore_checkpoint(m, "/proc/nowhere/x");
        CHECK(status != TUTTI_OK);
        CHECK_STATUS(tutti_job_check(job), status);
        CHECK_CONTAINS(tutti_error_message(), "/proc/nowhere");
        CHECK_INT(tutti_close(job), 1);
    }
}

TUTTI_TEST(hostile_json_is_refused)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{\"tutti\": \"0.1\"}",
        "{\"tutti\": \"0.1\", \"kind\": \"functional\", \"layers\": 3}",
        "{\"tutti\": \"0.1\", \"kind\": \"functional\", \"layers\": [{\"kind\": \"nothing\", \"name\": \"a\"}]}",
        "{\"tutti\": \"0.1\", \"kind\": \"functional\", \"layers\": [{\"kind\": \"dense\", \"name\": \"a\", \"units\": \"x\"}]}",
        "{\"tutti\": \"0.1\", \"kind\": \"functional\", \"layers\": [{\"kind\": \"dense\", \"name\": \"a\", \"wings\": 2}]}",
        "{\"tutti\": \"0.1\", \"kind\": \"functional\", \"layers\": [], \"inputs\": [{\"name\": \"x\", \"dtype\": \"f32\", \"shape\": [1,1,1,1,1,1,1,1,1]}]}",
        "{\"tutti\": \"0.1\", \"kind\": \"functional\", \"layers\": [], \"inputs\": [], \"nodes\": [{\"name\": \"n\", \"op\": \"relu\", \"inputs\": [\"m\"]}]}",
        "{\"tutti\": \"0.1\", \"kind\": \"functional\", \"layers\": [], \"inputs\": [{\"name\": \"x\", \"dtype\": \"f32\", \"shape\": [3]}], \"nodes\": [{\"name\": \"n\", \"op\": \"relu\", \"inputs\": [\"x:7\"]}]}",
        "{\"tutti\": \"0.1\", \"kind\": \"sequential\", \"layers\": [{\"kind\": \"dense\", \"name\": \"a\", \"units\": 2}], \"wings\": 2}",
        "{\"tutti\": \"0.1\", \"kind\": \"sequential\", \"layers\": [{\"kind\": \"dense\", \"name\": \"a\", \"units\": 2}], \"compile\": {\"optimizer\": {\"kind\": \"sgd\", \"learning_rate\": \"fast\"}, \"losses\": [{\"output\": 0, \"loss\": \"mse\"}]}}",
        "{\"tutti\": \"0.1\", \"kind\": \"sequential\", \"layers\": [{\"kind\": \"dense\", \"name\": \"a\", \"units\": 2}], \"compile\": {\"optimizer\": {\"kind\": \"sgd\"}, \"losses\": [{\"output\": 0, \"loss\": \"mse\", \"reduction\": 7}]}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tutti_job *job = tutti_open(NULL, NULL);
        CHECK(tutti_model_from_json(job, texts[i]) == NULL);
        CHECK(tutti_job_check(job) != TUTTI_OK);
        fflush(stderr);
        int saved = dup(2), null = open("/dev/null", 1);
        dup2(null, 2);
        CHECK_INT(tutti_close(job), 1);
        dup2(saved, 2);
        close(saved);
        close(null);
    }
}
