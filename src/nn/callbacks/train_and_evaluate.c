/* train_and_evaluate.c: see tutti/train_and_evaluate.h.
 *
 * Training is one fit whose epochs are the stretches between checkpoints, over data that repeats.
 * Its end is written into <folder>/trained, by which an evaluator knows that nothing more comes. */
#include "tutti/train_and_evaluate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "nn/model/model.h"
#include "ops/build.h"
#include "tutti/callbacks.h"
#include "tutti/checkpoint.h"
#include "tutti/cluster.h"
#include "tutti/strategy.h"

enum { SAVE_STEPS = 1000, KEEP = 5, PATH = 4096 };

typedef struct train_and_evaluate {
    tutti_model *model;
    const char *folder;
    tutti_train_spec train;
    tutti_eval_spec evaluation;
    bool evaluates; /* training does it */
    int64_t first;  /* step that it goes on from */
} train_and_evaluate;

/* ---- what came of a checkpoint ---- */

static tutti_status path_in(const char *folder, const char *name, char path[PATH])
{
    return snprintf(path, PATH, "%s/%s", folder, name) < PATH
               ? TUTTI_OK
               : tutti_fail(TUTTI_TOO_LARGE, "the folder's name %.40s… is too long", folder);
}

static tutti_status append_line(const char *path, const tutti_text *line)
{
    const tutti_world *w = tutti__world();
    tutti_file *file;
    int64_t size;
    if (line->failed)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a line of %s", path);
    TUTTI_TRY(w->open_file(w->self, path, TUTTI_FILE_APPEND, &file, &size));
    tutti_status status = w->write_at(w->self, file, size, line->data, line->size);
    tutti_status closed = w->close_file(w->self, file, true);
    return status == TUTTI_OK ? closed : status;
}

/* `prefix`: of names that are of the evaluation. */
static tutti_status tell(const train_and_evaluate *t, int64_t step, const tutti_logs *logs,
                         const char *prefix)
{
    char path[PATH];
    tutti_logs own = {0};
    tutti_text line = {0};
    TUTTI_TRY(path_in(t->folder, "evaluations.jsonl", path));
    tutti__text_add(&line, "{\"step\": %" PRId64, step);
    for (int i = 0; i < logs->count; i++) {
        const char *name = logs->items[i].name;
        double value = logs->items[i].value;
        if (strncmp(name, prefix, strlen(prefix)) != 0)
            continue;
        tutti_logs_set(&own, name + strlen(prefix), value);
        tutti__text_add(&line, ", \"%s\": ", name + strlen(prefix));
        tutti__text_add(&line, isfinite(value) ? "%.9g" : "null", value);
    }
    tutti__text_add(&line, "}\n");
    tutti_status status = append_line(path, &line);
    tutti__text_free(&line);
    if (status == TUTTI_OK && t->evaluation.evaluated)
        t->evaluation.evaluated(t->evaluation.context, step, &own);
    return status;
}

/* ---- training ---- */

static tutti_status note_evaluation(void *self, tutti_event *event)
{
    const train_and_evaluate *t = self;
    return event->logs && t->evaluates ? tell(t, event->step, event->logs, "val_") : TUTTI_OK;
}

static const tutti_callback_kind evaluation_noted = {.struct_size = sizeof evaluation_noted,
                                                     .name = "train_and_evaluate",
                                                     .epoch_end = note_evaluation,
                                                     .writes = true};

/* How many steps, and how many between checkpoints. */
static tutti_status plan_steps(train_and_evaluate *t)
{
    int64_t epoch = tutti_cardinality(t->train.data);
    if (t->train.max_steps < 0 || t->train.epochs < 0 || t->train.save_steps < 0)
        return tutti_fail(TUTTI_INVALID, "train_and_evaluate: steps and epochs are not negative");
    if (t->train.max_steps == 0) {
        if (epoch <= 0)
            return tutti_fail(TUTTI_INVALID,
                              "train_and_evaluate: the length of the data is not known; say "
                              ".max_steps");
        t->train.max_steps = epoch * (t->train.epochs > 0 ? t->train.epochs : 1);
    }
    if (t->train.save_steps == 0)
        t->train.save_steps = epoch > 0 ? epoch : SAVE_STEPS;
    if (t->train.keep == 0)
        t->train.keep = KEEP;
    return TUTTI_OK;
}

/* Epochs `from` to `to` of so many steps. The user's callbacks are used up by the first. */
static tutti_status fit_some(train_and_evaluate *t, tutti_dataset *data, int64_t from, int64_t to,
                             int64_t steps)
{
    char path[PATH];
    int given = t->train.callbacks.count;
    tutti_callback **list = calloc((size_t)given + 2, sizeof *list);
    if (!list)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to train");
    TUTTI_TRY(path_in(t->folder, "step-{step}", path));
    if (given > 0)
        memcpy(list, t->train.callbacks.list, (size_t)given * sizeof(tutti_callback *));
    t->train.callbacks.count = 0;
    list[given] = tutti_checkpoint(path, .keep = t->train.keep);
    list[given + 1] = tutti_callback_make(&evaluation_noted, t);
    tutti_fit_options options = {.struct_size = sizeof options,
                                 .initial_epoch = (int)from,
                                 .epochs = (int)to,
                                 .steps_per_epoch = steps,
                                 .validation = t->evaluates ? t->evaluation.data : NULL,
                                 .validation_steps = t->evaluation.steps,
                                 .callbacks = {given + 2, list},
                                 .quiet = t->train.quiet};
    const tutti_history *history = tutti_fit_with(t->model, data, &options);
    free(list);
    return history ? TUTTI_OK : tutti_job_check(tutti_model_job(t->model));
}

static tutti_status go_on(train_and_evaluate *t)
{
    char latest[PATH];
    const tutti_world *w = tutti__world();
    TUTTI_TRY(w->make_folder(w->self, t->folder));
    tutti_status status = tutti_latest_checkpoint(t->folder, sizeof latest, latest);
    if (status == TUTTI_NOT_FOUND)
        return TUTTI_OK;
    TUTTI_TRY(status);
    TUTTI_TRY(tutti_restore_checkpoint(t->model, latest));
    t->first = tutti_model_steps(t->model);
    return TUTTI_OK;
}

/* Written by whoever saves. */
static tutti_status note_end(const train_and_evaluate *t)
{
    char path[PATH], text[32];
    const tutti_world *w = tutti__world();
    if (tutti_strategy_rank(tutti_job_strategy(tutti_model_job(t->model))) > 0)
        return TUTTI_OK;
    TUTTI_TRY(path_in(t->folder, "trained", path));
    snprintf(text, sizeof text, "%" PRId64 "\n", tutti_model_steps(t->model));
    return w->write_file(w->self, path, text, strlen(text));
}

static tutti_status train(train_and_evaluate *t)
{
    TUTTI_TRY(plan_steps(t));
    TUTTI_TRY(go_on(t));
    int64_t whole = t->train.max_steps / t->train.save_steps;
    int64_t rest = t->train.max_steps % t->train.save_steps;
    tutti_dataset *data = tutti_cardinality(t->train.data) == TUTTI_ENDLESS
                              ? t->train.data
                              : tutti_repeat(t->train.data, 0);
    if (whole > 0 && t->first < whole * t->train.save_steps)
        TUTTI_TRY(fit_some(t, data, 0, whole, t->train.save_steps));
    bool more = !tutti_interrupted() && tutti_job_ok(tutti_model_job(t->model)) &&
                tutti_model_steps(t->model) < t->train.max_steps;
    if (more && rest > 0)
        TUTTI_TRY(fit_some(t, data, whole, whole + 1, rest));
    return tutti_model_steps(t->model) >= t->train.max_steps ? note_end(t) : TUTTI_OK;
}

/* ---- an evaluator ---- */

/* The first checkpoint behind `after`, in the order of steps; NOT_FOUND when none has come yet. */
static tutti_status next_checkpoint(const char *folder, int64_t after, char path[PATH],
                                    int64_t *ret_step)
{
    const tutti_world *w = tutti__world();
    char **names = NULL;
    size_t count = 0;
    int64_t best = INT64_MAX;
    TUTTI_TRY(w->list_folder(w->self, folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        int64_t step;
        int end = 0;
        if (sscanf(names[i], "step-%" SCNd64 "%n", &step, &end) != 1 || step <= after ||
            step >= best)
            continue;
        if (strcmp(names[i] + end, ".safetensors") == 0 ||
            strcmp(names[i] + end, ".safetensors.index.json") == 0)
            best = step;
    }
    free(names);
    if (best == INT64_MAX)
        return tutti_fail(TUTTI_NOT_FOUND, "no checkpoint behind step %" PRId64 " in %s", after,
                          folder);
    char name[64];
    snprintf(name, sizeof name, "step-%" PRId64, best);
    *ret_step = best;
    return path_in(folder, name, path);
}

/* The step with which the training ended; -1: it has not. */
static int64_t last_step(const char *folder)
{
    const tutti_world *w = tutti__world();
    char path[PATH];
    void *text = NULL;
    size_t size;
    int64_t step = -1;
    if (path_in(folder, "trained", path) != TUTTI_OK ||
        w->read_file(w->self, path, 64, &text, &size) != TUTTI_OK)
        return -1;
    if (sscanf(text, "%" SCNd64, &step) != 1)
        step = -1;
    free(text);
    return step;
}

static tutti_status evaluate_one(const train_and_evaluate *t, const char *path, int64_t step)
{
    tutti_logs logs = {0};
    tutti_status status = tutti_restore_checkpoint(t->model, path);
    if (status == TUTTI_OK)
        status = tutti_evaluate(t->model, t->evaluation.data, &logs, .steps = t->evaluation.steps,
                                .quiet = t->train.quiet);
    return status == TUTTI_OK ? tell(t, step, &logs, "") : status;
}

static tutti_status await_checkpoints(const train_and_evaluate *t)
{
    const tutti_world *w = tutti__world();
    double patience = t->evaluation.patience > 0 ? t->evaluation.patience : 3600;
    int64_t at = -1, heard = w->now_ns(w->self);
    TUTTI_TRY(w->make_folder(w->self, t->folder));
    while (!tutti_interrupted()) {
        char path[PATH];
        int64_t step, end = last_step(t->folder); /* before the search: nothing comes after it */
        tutti_status status = next_checkpoint(t->folder, at, path, &step);
        if (status == TUTTI_OK) {
            TUTTI_TRY(evaluate_one(t, path, step));
            at = step;
            heard = w->now_ns(w->self);
            continue;
        }
        if (status != TUTTI_NOT_FOUND)
            return status;
        if (end >= 0 && at >= end)
            return TUTTI_OK;
        if ((double)(w->now_ns(w->self) - heard) / 1e9 > patience)
            return tutti_fail(TUTTI_DEADLINE,
                              "evaluator: no checkpoint came into %s for %.0f s; is the training "
                              "alive, and does it use this folder?",
                              t->folder, patience);
        w->sleep_ns(w->self, INT64_C(200000000));
    }
    return TUTTI_OK;
}

static tutti_status evaluate_alone(train_and_evaluate *t)
{
    tutti_strategy *alone = tutti_strategy_one_device();
    tutti_strategy_enter(alone);
    tutti_status status = await_checkpoints(t);
    tutti_strategy_leave();
    tutti_status closed = tutti_strategy_close(alone);
    return status == TUTTI_OK ? closed : status;
}

/* ---- roles ---- */

static tutti_status by_role(train_and_evaluate *t)
{
    tutti_cluster *cluster = NULL;
    TUTTI_TRY(tutti_cluster_resolve(NULL, &cluster));
    bool evaluator = tutti_cluster_role(cluster) == TUTTI_ROLE_EVALUATOR;
    t->evaluates =
        t->evaluation.in_training || (tutti_cluster_size(cluster) == 1 &&
                                      tutti_cluster_count(cluster, TUTTI_ROLE_EVALUATOR) == 0);
    tutti_cluster_free(cluster);
    return evaluator ? evaluate_alone(t) : train(t);
}

tutti_status tutti_train_and_evaluate(tutti_model *model, const char *folder,
                                      const tutti_train_spec *train_spec,
                                      const tutti_eval_spec *evaluation)
{
    RULE_OPTIONS(tutti_train_spec, own, train_spec);
    RULE_OPTIONS(tutti_eval_spec, eval, evaluation);
    if (!model)
        return TUTTI_INVALID;
    train_and_evaluate t = {.model = model, .folder = folder, .train = own, .evaluation = eval};
    tutti_status status = tutti_job_check(tutti_model_job(model));
    if (status == TUTTI_OK && (!folder || !own.data || !eval.data))
        status = tutti_fail(TUTTI_INVALID, "train_and_evaluate needs a folder, and data to train "
                                           "with and to evaluate on");
    if (status == TUTTI_OK)
        status = by_role(&t);
    for (int i = 0; i < t.train.callbacks.count; i++)
        tutti_callback_release(t.train.callbacks.list[i]);
    return tutti_job_fail(tutti_model_job(model), status);
}
