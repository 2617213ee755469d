/* messages_test.c: what succeeds leaves no message of what it tried on the way. */
#include "nn/callbacks/training.h"

#define CHECK_SILENT(call)                                                                         \
    do {                                                                                           \
        (tutti_fail)(TUTTI_OK, "%s", "");                                                          \
        CHECK_OK(call);                                                                            \
        CHECK_STR(tutti_error_message(), "");                                                      \
    } while (0)

static tutti_status fit(training *t)
{
    return tutti_fit(t->model, t->data, .epochs = 1, .quiet = true) ? TUTTI_OK
                                                                    : tutti_job_check(t->job);
}

static char *in(const training *t, const char *name, char path[300])
{
    snprintf(path, 300, "%s/%s", t->folder, name);
    return path;
}

TUTTI_TEST(training_and_saving_leave_no_message)
{
    training t = training_begin(NULL);
    tutti_logs logs;
    char path[300], found[300];
    CHECK_SILENT(fit(&t));
    CHECK_SILENT(tutti_evaluate(t.model, t.data, &logs));
    for (int i = 0; i < 2; i++) {
        CHECK_SILENT(tutti_save_model(t.model, in(&t, "model", path)));
        CHECK_SILENT(tutti_save_checkpoint(t.model, in(&t, "kept/c", path)));
    }
    CHECK_SILENT(tutti_latest_checkpoint(in(&t, "kept", path), sizeof found, found));
    CHECK_SILENT(tutti_load_weights(t.model, in(&t, "model", path)));
    CHECK_SILENT(tutti_restore_checkpoint(t.model, found));
    CHECK_SILENT(fit(&t));
    in(&t, "kept/c.safetensors", path);
    CHECK_INT(truncate(path, 100), 0);
    CHECK_SILENT(tutti_restore_checkpoint(t.model, path)); /* the generation before */
    training_end(t);
}

TUTTI_TEST(files_in_pieces_leave_no_message)
{
    training t = training_begin(NULL);
    char path[300];
    tutti_tensor *tensor;
    tutti_named_tensors list = {0};
    in(&t, "x.safetensors", path);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){1000}, &tensor));
    const tutti_named_tensor two[] = {{.name = "a", .tensor = tensor},
                                      {.name = "b", .tensor = tensor}};
    for (int i = 0; i < 2; i++) {
        CHECK_SILENT(tutti_safetensors_save(path, 2, two, .shard_bytes = 4000));
        CHECK_SILENT(tutti_safetensors_load(path, &list));
        tutti_named_tensors_clear(&list);
    }
    tutti_tensor_release(tensor);
    training_end(t);
}

/* Kernels find out by trying whether they can run a node. */
TUTTI_TEST(choosing_kernels_leaves_no_message)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *fed, *value;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){4, 8}, &fed));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 8);
    tutti_sym whole = tutti_cast(x, TUTTI_I32);
    tutti_sym y = tutti_sum(tutti_mul(whole, whole));
    CHECK_SILENT(tutti_run(s, .feed = TUTTI_FEED({x, fed}), .fetch = TUTTI_FETCH({y, &value})));
    tutti_tensor_release(value);
    tutti_tensor_release(fed);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
