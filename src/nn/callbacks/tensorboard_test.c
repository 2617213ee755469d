/* tensorboard_test.c: what a training writes for TensorBoard, read again. */
#define _GNU_SOURCE
#include "io/events.h"
#include "io/gzip.h"
#include "nn/callbacks/training.h"

typedef struct tally {
    int scalars, histograms, texts;
    double last; /* of epoch_loss */
} tally;

static void read_events(const training *t, const char *part, tally *ret)
{
    const tutti_world *world = tutti__world();
    char folder[400], path[700], **names;
    size_t count;
    snprintf(folder, sizeof folder, "%s/logs/%s", t->folder, part);
    CHECK_OK(world->list_folder(world->self, folder, &names, &count));
    CHECK_INT(count, 1);
    snprintf(path, sizeof path, "%s/%s", folder, names[0]);
    free(names);
    tutti_source *source;
    tutti_events_reader reader;
    tutti_event_value value;
    bool more;
    *ret = (tally){0};
    CHECK_OK(tutti__source_file(path, &source));
    CHECK_OK(tutti__events_open(source, &reader));
    for (;;) {
        CHECK_OK(tutti__events_next(&reader, &value, &more));
        if (!more)
            break;
        ret->scalars += strcmp(value.plugin, "scalars") == 0;
        ret->histograms += strcmp(value.plugin, "histograms") == 0;
        ret->texts += strcmp(value.plugin, "text") == 0;
        if (strcmp(value.tag, "epoch_loss") == 0)
            ret->last = value.value;
    }
    tutti__events_reader_close(&reader);
}

/* Steps and operators by name, packed and as planes. */
static void check_profile(const char *logs)
{
    static const char *const endings[] = {".trace.json.gz", ".xplane.pb"};
    static const char *const texts[2][3] = {{"\"step\"", "\"sgd_update\"", "\"dur\""},
                                            {"step_num", ":SgdUpdate", "/host:CPU"}};
    const tutti_world *world = tutti__world();
    char folder[500], path[1000], **runs, **names;
    size_t count, size;
    snprintf(folder, sizeof folder, "%s/plugins/profile", logs);
    CHECK_OK(world->list_folder(world->self, folder, &runs, &count));
    CHECK_INT(count, 1);
    snprintf(folder, sizeof folder, "%s/plugins/profile/%s", logs, runs[0]);
    CHECK_OK(world->list_folder(world->self, folder, &names, &count));
    CHECK_INT(count, 2); /* sorted: the trace, the planes */
    for (int i = 0; i < 2; i++) {
        void *data, *plain;
        CHECK_CONTAINS(names[i], endings[i]);
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        CHECK_OK(world->read_file(world->self, path, 1 << 20, &data, &size));
        if (i == 0) {
            CHECK_OK(tutti__gzip_unpack(path, data, size, 1 << 24, &plain, &size));
            free(data);
            data = plain;
        }
        /* A device that runs whole graphs does not say when it ran which operator. */
        const char *device = getenv("TUTTI_DEVICE");
        bool whole = device != NULL && strncmp(device, "whole", 5) == 0;
        for (int k = 0; k < 3; k++)
            CHECK((whole && k == 1) ||
                  memmem(data, size, texts[i][k], strlen(texts[i][k])) != NULL);
        free(data);
    }
    free(names);
    free(runs);
}

TUTTI_TEST(tensorboard_gets_event_files_and_a_profile)
{
    training t = training_begin(NULL);
    char path[400];
    tally train, validation;
    snprintf(path, sizeof path, "%s/logs", t.folder);
    const tutti_history *history =
        tutti_fit(t.model, t.data, .epochs = 4, .validation = t.data, .quiet = true,
                  .callbacks = TUTTI_LIST(
                      tutti_tensorboard(path, .histograms = 2, .every_steps = 8, .profile = true)));
    CHECK(history);
    read_events(&t, "train", &train);
    read_events(&t, "validation", &validation);
    CHECK_INT(train.scalars, 4 * 3 + 2 * 3); /* loss, mae, lr: by epoch, and at steps 8 and 16 */
    CHECK_INT(train.histograms, 2 * 2);      /* kernel and bias, in epochs 0 and 2 */
    CHECK_INT(train.texts, 1);
    CHECK_INT(validation.scalars, 4 * 2 * 2); /* by epoch and by step */
    CHECK_NEAR(train.last, tutti_history_get(history, "loss", -1), 1e-6);
    CHECK_NEAR(validation.last, tutti_history_get(history, "val_loss", -1), 1e-6);
    check_profile(path);
    training_end(t);
}

/* A program that writes its curves where --logs asks for them writes them once. */
TUTTI_TEST(tensorboard_of_a_program_is_the_one_of_the_flag)
{
    for (int own = 0; own < 2; own++) {
        char folder[] = "/tmp/tutti-logs-XXXXXX", logs[100], command[200];
        CHECK(mkdtemp(folder) != NULL);
        snprintf(logs, sizeof logs, "%s/logs", folder);
        training t = training_begin((const char *[]){"--logs", logs, NULL});
        tally train;
        if (own)
            CHECK(tutti_fit(t.model, t.data, .epochs = 4, .quiet = true,
                            .callbacks = TUTTI_LIST(tutti_tensorboard(logs))));
        else
            CHECK(tutti_fit(t.model, t.data, .epochs = 4, .quiet = true));
        training there = t;
        snprintf(there.folder, sizeof there.folder, "%s", folder);
        read_events(&there, "train", &train);
        CHECK_INT(train.scalars, 4 * 3); /* loss, mae, lr */
        training_end(t);
        snprintf(command, sizeof command, "rm -rf %s", folder);
        CHECK_INT(system(command), 0);
    }
}
