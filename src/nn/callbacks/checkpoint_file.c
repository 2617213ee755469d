/* checkpoint_file.c: saving and restoring all that training needs, also while it goes on. */
#include "tutti/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/log.h"
#include "base/require.h"
#include "io/number.h"
#include "io/safetensors_files.h"
#include "nn/callbacks/checkpoint.h"
#include "nn/model/model_strategy.h"
#include "nn/model/saver.h"
#include "nn/training/callback.h"
#include "state/checkpoint.h"

/* ---- paths ---- */

/* {epoch} and {step} replaced; the ending added. */
static tutti_status expand_path(const tutti_model *model, const char *pattern, char *ret,
                                size_t size)
{
    char path[4000];
    size_t used = 0;
    const tutti_trainer *trainer = model->trainer;
    int64_t epoch = trainer ? (int64_t)trainer->epoch + 1 : 0;
    int64_t step = trainer ? trainer->steps : 0;
    for (const char *at = pattern; at && *at;) {
        char number[24] = "";
        size_t skip = 1;
        if (strncmp(at, "{epoch}", 7) == 0)
            skip = 7, snprintf(number, sizeof number, "%" PRId64, epoch);
        else if (strncmp(at, "{step}", 6) == 0)
            skip = 6, snprintf(number, sizeof number, "%" PRId64, step);
        else
            number[0] = *at, number[1] = 0;
        if (used + strlen(number) >= sizeof path)
            return tutti_fail(TUTTI_TOO_LARGE, "the path '%.80s…' is too long", pattern);
        used += (size_t)snprintf(path + used, sizeof path - used, "%s", number);
        at += skip;
    }
    path[used] = 0;
    return tutti__checkpoint_path(path, ret, size);
}

/* ---- what stands in the metadata ---- */

typedef struct facts {
    char step[24], epoch[24], batch[24], updates[24], gathered[24], rate[TUTTI_NUMBER_TEXT],
        seed[24];
    char data_epoch[24], delivered[24], pipeline[24];
    char samples[24];
    char *memory, *logs; /* from malloc, or NULL */
    tutti_text_pair pairs[20];
    size_t count;
} facts;

static void add_fact(facts *f, const char *key, const char *value)
{
    f->pairs[f->count++] = (tutti_text_pair){key, value};
}

/* What callbacks remember, of the fit under way or the last one. */
static tutti_status collect_memory(const tutti_trainer *trainer, facts *f)
{
    if (trainer->fit)
        TUTTI_TRY(tutti__fit_remember(trainer->fit, &f->memory));
    else if (trainer->memory && !(f->memory = strdup(trainer->memory)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a checkpoint");
    if (f->memory && strcmp(f->memory, "[]") != 0)
        add_fact(f, "tutti.callbacks", f->memory);
    return TUTTI_OK;
}

static void free_facts(facts *f)
{
    free(f->memory);
    free(f->logs);
}

/* To be freed by free_facts, also after a failure. */
static tutti_status collect(const tutti_model *model, facts *f)
{
    const tutti_trainer *trainer = model->trainer;
    f->count = 0;
    f->memory = f->logs = NULL;
    add_fact(f, "format", "pt"); /* as transformers expects it */
    add_fact(f, "tutti.kind", trainer ? "checkpoint" : "weights");
    add_fact(f, "tutti.model", model->name);
    snprintf(f->seed, sizeof f->seed, "%" PRIu64, tutti_job_seed(model->job));
    add_fact(f, "tutti.seed", f->seed);
    if (!trainer)
        return TUTTI_OK;
    snprintf(f->step, sizeof f->step, "%" PRId64, trainer->steps);
    snprintf(f->epoch, sizeof f->epoch, "%d", trainer->epoch);
    snprintf(f->batch, sizeof f->batch, "%" PRId64, trainer->batch);
    snprintf(f->data_epoch, sizeof f->data_epoch, "%" PRIu64, trainer->position.epoch);
    snprintf(f->delivered, sizeof f->delivered, "%" PRId64, trainer->position.delivered);
    snprintf(f->pipeline, sizeof f->pipeline, "%" PRIu64, trainer->position.pipeline);
    tutti__number_text(trainer->rate, false, f->rate);
    add_fact(f, "tutti.step", f->step);
    add_fact(f, "tutti.epoch", f->epoch);
    add_fact(f, "tutti.batch", f->batch);
    add_fact(f, "tutti.epoch_ended", trainer->ended ? "1" : "0");
    add_fact(f, "tutti.data_epoch", f->data_epoch);
    add_fact(f, "tutti.delivered", f->delivered);
    add_fact(f, "tutti.pipeline", f->pipeline);
    add_fact(f, "tutti.apart", trainer->position.apart ? "1" : "0");
    add_fact(f, "tutti.data_ended", trainer->data_ended ? "1" : "0");
    snprintf(f->updates, sizeof f->updates, "%" PRId64, trainer->updates);
    snprintf(f->gathered, sizeof f->gathered, "%d", trainer->gathered);
    add_fact(f, "tutti.learning_rate", f->rate);
    add_fact(f, "tutti.updates", f->updates);
    add_fact(f, "tutti.gathered", f->gathered);
    snprintf(f->samples, sizeof f->samples, "%" PRId64, trainer->samples);
    add_fact(f, "tutti.samples", f->samples);
    if (trainer->last.count > 0) {
        TUTTI_TRY(tutti__logs_write(&trainer->last, &f->logs));
        add_fact(f, "tutti.logs", f->logs);
    }
    return collect_memory(trainer, f);
}

/* ---- saving ---- */

static tutti_status able_to_save(tutti_model *model)
{
    TUTTI_TRY(tutti__model_need_built(model));
    return tutti__model_join_to_save(model);
}

static tutti_status save_checkpoint(tutti_model *model, const char *path)
{
    char full[4096];
    facts f;
    tutti_snapshot snapshot;
    TUTTI_TRY(tutti_checkpoint_wait(model));
    TUTTI_TRY(expand_path(model, path, full, sizeof full));
    tutti_status status = collect(model, &f);
    if (status == TUTTI_OK)
        status = tutti__engine_snapshot(model->engine, &snapshot);
    if (status == TUTTI_OK) {
        status = tutti__checkpoint_write(full, &snapshot, f.count, f.pairs,
                                         tutti__checkpoint_shard_bytes());
        tutti__snapshot_release(&snapshot);
    }
    if (status == TUTTI_OK)
        tutti__strategy_saved(tutti__model_strategy(model), tutti_model_steps(model), full);
    free_facts(&f);
    return status;
}

tutti_status tutti_save_checkpoint(tutti_model *model, const char *path)
{
    tutti_status status = able_to_save(model);
    if (status == TUTTI_OK)
        status = tutti__model_saved(model, tutti__model_speaks(model) ? save_checkpoint(model, path)
                                                                      : TUTTI_OK);
    return tutti__model_fail(model, status);
}

/* Written by the saver's thread. */
typedef struct job {
    const tutti_strategy *strategy;
    int64_t step;
    char path[4096];
    facts f;
    tutti_snapshot snapshot;
} job;

static void free_job(job *j)
{
    tutti__snapshot_release(&j->snapshot);
    free_facts(&j->f);
    free(j);
}

static tutti_status write_job(void *context)
{
    job *j = context;
    tutti_status status = tutti__checkpoint_write(j->path, &j->snapshot, j->f.count, j->f.pairs,
                                                  tutti__checkpoint_shard_bytes());
    if (status == TUTTI_OK)
        tutti__strategy_saved(j->strategy, j->step, j->path);
    free_job(j);
    return status;
}

tutti_status tutti_save_checkpoint_async(tutti_model *model, const char *path)
{
    TUTTI_TRY(able_to_save(model));
    if (!tutti__model_speaks(model))
        return TUTTI_OK;
    if (!model->saver)
        TUTTI_TRY(tutti__saver_create(&model->saver));
    TUTTI_TRY(tutti__saver_wait(model->saver));
    job *j = calloc(1, sizeof *j);
    if (!j)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a checkpoint");
    j->strategy = tutti__model_strategy(model);
    j->step = tutti_model_steps(model);
    tutti_status status = expand_path(model, path, j->path, sizeof j->path);
    if (status == TUTTI_OK)
        status = tutti__engine_snapshot(model->engine, &j->snapshot);
    if (status == TUTTI_OK)
        status = collect(model, &j->f);
    if (status != TUTTI_OK) {
        free_job(j);
        return status;
    }
    tutti__saver_start(model->saver, write_job, j);
    return TUTTI_OK;
}

tutti_status tutti_checkpoint_wait(tutti_model *model)
{
    return model && model->saver ? tutti__saver_wait(model->saver) : TUTTI_OK;
}

/* ---- restoring ---- */

static int64_t number(const tutti_safetensors *file, const char *key)
{
    const char *text = tutti__safetensors_metadata(file, key);
    return text ? (int64_t)strtoull(text, NULL, 10) : 0;
}

/* Tensors that are weights of this model must be of their shape. */
static tutti_status checkpoint_file_compare(tutti_model *model, const tutti_safetensors *file,
                                            const char *path)
{
    tutti_weight_info info;
    int count = model->built ? tutti_weight_count(model) : 0;
    for (int i = 0; i < count && tutti_weight_at(model, i, &info) == TUTTI_OK; i++) {
        const tutti_safetensor *item = tutti__safetensors_find(file, info.name);
        char have[TUTTI_TYPE_TEXT], want[TUTTI_TYPE_TEXT];
        if (!item)
            return tutti_fail(TUTTI_NOT_FOUND, "%s has no weight '%s' of model '%s'", path,
                              info.name, model->name);
        if (!tutti_type_equal(&item->type, &info.type))
            return tutti_fail(TUTTI_INVALID, "weight '%s' is %s in %s, the model has %s", info.name,
                              tutti_type_text(&item->type, have), path,
                              tutti_type_text(&info.type, want));
    }
    return TUTTI_OK;
}

static tutti_status checkpoint_file_restore(tutti_model *model, const tutti_safetensors *file,
                                            const char *path)
{
    tutti_trainer *trainer = model->trainer;
    const char *kind = tutti__safetensors_metadata(file, "tutti.kind");
    if (!kind || strcmp(kind, "checkpoint") != 0)
        return tutti_fail(TUTTI_INVALID,
                          "%s is no checkpoint of a training; load it with tutti_load_weights",
                          path);
    TUTTI_TRY(checkpoint_file_compare(model, file, path));
    TUTTI_TRY(tutti__model_engine(model));
    TUTTI_TRY(tutti__checkpoint_restore(file, tutti__engine_state(model->engine)));
    trainer->steps = number(file, "tutti.step");
    trainer->updates = number(file, "tutti.updates");
    trainer->gathered = (int)number(file, "tutti.gathered");
    trainer->samples = number(file, "tutti.samples");
    const char *logs = tutti__safetensors_metadata(file, "tutti.logs");
    if (logs)
        TUTTI_TRY(tutti__logs_read(logs, &model->arena, &trainer->last));
    trainer->epoch = (int)number(file, "tutti.epoch");
    trainer->batch = number(file, "tutti.batch");
    trainer->ended = !tutti__safetensors_metadata(file, "tutti.epoch_ended") ||
                     number(file, "tutti.epoch_ended") != 0;
    trainer->position = (tutti_position){.epoch = (uint64_t)number(file, "tutti.data_epoch"),
                                         .delivered = number(file, "tutti.delivered"),
                                         .pipeline = (uint64_t)number(file, "tutti.pipeline"),
                                         .apart = number(file, "tutti.apart") != 0};
    trainer->data_ended = number(file, "tutti.data_ended") != 0;
    trainer->resumed = trainer->steps > 0;
    trainer->restored = true;
    trainer->identity = tutti__checkpoint_identity(file);
    const char *memory = tutti__safetensors_metadata(file, "tutti.callbacks");
    free(trainer->memory);
    trainer->memory = memory ? strdup(memory) : NULL;
    trainer->recalls = memory != NULL;
    const char *rate = tutti__safetensors_metadata(file, "tutti.learning_rate");
    if (rate)
        trainer->rate = trainer->optimizer.learning_rate = tutti__strtod(rate, NULL);
    return TUTTI_OK;
}

static tutti_status restore_from(tutti_model *model, const char *path)
{
    char full[4096];
    tutti_safetensors *file;
    TUTTI_TRY(tutti__need_trainer(model));
    TUTTI_TRY(tutti_checkpoint_wait(model));
    TUTTI_TRY(tutti__checkpoint_path(path, full, sizeof full));
    TUTTI_TRY(tutti__checkpoint_open(full, true, &file));
    tutti_status status = checkpoint_file_restore(model, file, full);
    tutti__safetensors_close(file);
    return status;
}

tutti_status tutti_restore_checkpoint(tutti_model *model, const char *path)
{
    return tutti__model_fail(model, restore_from(model, path));
}

/* ---- the newest ---- */

static bool has_ending(const char *name, const char *ending)
{
    size_t n = strlen(name), e = strlen(ending);
    return n >= e && strcmp(name + n - e, ending) == 0;
}

/* Is the name that of a checkpoint? Of one that was lost, "x.previous" is taken, as "x". */
static bool is_checkpoint(char *const *names, size_t count, char *name)
{
    if (has_ending(name, ".previous")) {
        name[strlen(name) - strlen(".previous")] = 0;
        for (size_t i = 0; i < count; i++)
            if (names[i] != name && strcmp(names[i], name) == 0)
                return false;
    }
    if (has_ending(name, ".safetensors"))
        return !tutti__safetensors_is_piece(name);
    return has_ending(name, ".safetensors.index.json");
}

tutti_status tutti__checkpoint_peek(const char *path, int64_t *ret_step)
{
    char full[4096];
    tutti_safetensors *file;
    TUTTI_TRY(tutti__checkpoint_path(path, full, sizeof full));
    TUTTI_TRY(tutti__checkpoint_open(full, true, &file));
    const char *step = tutti__safetensors_metadata(file, "tutti.step");
    *ret_step = step ? strtoll(step, NULL, 10) : -1;
    tutti__safetensors_close(file);
    return TUTTI_OK;
}

/* Did another program write it? Then it may lie among checkpoints, and is none. */
static bool is_foreign(const char *path)
{
    tutti_safetensors *file;
    tutti_error before;
    tutti__error_capture(TUTTI_CORRUPT, &before);
    bool opened = tutti__safetensors_open(path, false, &file) == TUTTI_OK;
    tutti__error_restore(&before);
    if (!opened)
        return false;
    bool foreign = !file->files[0].checked;
    tutti__safetensors_close(file);
    return foreign;
}

tutti_status tutti__checkpoint_latest(const char *folder, size_t size, char *ret_path,
                                      int64_t *ret_step, tutti_error *ret_damage)
{
    const tutti_world *world = tutti__world();
    char **names, best_path[4096] = "", path[4096];
    size_t count;
    int64_t best = -1;
    *ret_damage = (tutti_error){.status = TUTTI_OK};
    TUTTI_TRY(world->list_folder(world->self, folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        int64_t step = -1;
        if (!is_checkpoint(names, count, names[i]) ||
            snprintf(path, sizeof path, "%s/%s", folder, names[i]) >= (int)sizeof path)
            continue;
        tutti_status status = tutti__checkpoint_peek(path, &step);
        if (status != TUTTI_OK && status != TUTTI_NOT_FOUND) {
            tutti__log_job(TUTTI_LOG_WARNING, "%s; it is passed over", tutti_error_message());
            if (!is_foreign(path))
                tutti__error_capture(status, ret_damage);
        }
        if (step > best) {
            best = step;
            memcpy(best_path, path, sizeof path);
        }
    }
    free(names);
    if (best < 0)
        return tutti_fail(TUTTI_NOT_FOUND, "there is no good checkpoint in %s", folder);
    if (snprintf(ret_path, size, "%s", best_path) >= (int)size)
        return tutti_fail(TUTTI_TOO_LARGE, "the path %s does not fit %zu bytes", best_path, size);
    *ret_step = best;
    return TUTTI_OK;
}

tutti_status tutti_latest_checkpoint(const char *folder, size_t size, char *ret_path)
{
    TUTTI_REQUIRE(folder);
    tutti_error damage;
    int64_t step;
    return tutti__checkpoint_latest(folder, size, ret_path, &step, &damage);
}
