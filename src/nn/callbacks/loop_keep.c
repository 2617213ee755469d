/* loop_keep.c: --save and --resume of loops written by hand: variables, optimizers and random
 * numbers, which are the state's; its queues; how far the job's datasets are read; the epoch, its
 * steps and the means that are shown. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/job.h"
#include "base/log.h"
#include "base/world.h"
#include "data/dataset.h"
#include "exec/plan/share.h"
#include "exec/tape/eager.h"
#include "io/number.h"
#include "io/safetensors.h"
#include "io/safetensors_files.h"
#include "nn/callbacks/loop.h"
#include "nn/model/model_strategy.h"
#include "nn/training/consistency.h"
#include "state/checkpoint.h"
#include "tutti/checkpoint.h"
#include "tutti/files.h"

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a checkpoint");
}

/* The first process of a job writes; all read. */
static bool writes(const tutti_progress *p)
{
    return p->save_resume.engine && p->save_resume.path &&
           tutti_strategy_rank(tutti_job_strategy(p->job)) <= 0;
}

/* ---- saving ---- */

enum { NUMBERS = 9, TEXTS = 3 };

/* What is written, also by the saver's thread. */
typedef struct record {
    const tutti_strategy *strategy;
    int64_t step;
    char path[4096];
    tutti_snapshot snapshot;
    char numbers[NUMBERS][TUTTI_NUMBER_TEXT];
    char *texts[TEXTS]; /* from malloc */
    tutti_text_pair pairs[NUMBERS + TEXTS + 2];
    size_t count;
} record;

static void free_record(record *r)
{
    tutti__snapshot_release(&r->snapshot);
    for (int i = 0; i < TEXTS; i++)
        free(r->texts[i]);
    free(r);
}

static void loop_keep_add(record *r, const char *key, const char *value)
{
    r->pairs[r->count++] = (tutti_text_pair){key, value};
}

static tutti_status collect_texts(const tutti_progress *p, record *r)
{
    tutti_logs counts = p->logs;
    for (int i = 0; i < counts.count; i++)
        counts.items[i].value = (double)p->counts[i];
    TUTTI_TRY(tutti__loops_save(p->job, &r->texts[0]));
    loop_keep_add(r, "tutti.loops", r->texts[0]);
    TUTTI_TRY(tutti__logs_write(&p->logs, &r->texts[1]));
    loop_keep_add(r, "tutti.logs", r->texts[1]);
    TUTTI_TRY(tutti__logs_write(&counts, &r->texts[2]));
    loop_keep_add(r, "tutti.counts", r->texts[2]);
    return TUTTI_OK;
}

static tutti_status collect(const tutti_progress *p, bool ended, record *r)
{
    const tutti_event *event = &p->fit.event;
    const tutti_trainer *trainer = p->save_resume.model ? p->save_resume.model->trainer : NULL;
    const struct {
        const char *key;
        int64_t value;
    } facts[] = {{"tutti.seed", (int64_t)tutti_job_seed(p->job)},
                 {"tutti.step", event->step},
                 {"tutti.epoch", event->epoch},
                 {"tutti.batch", event->batch},
                 {"tutti.epoch_ended", ended},
                 {"tutti.samples", p->fit.samples},
                 {"tutti.updates", trainer ? trainer->updates : 0},
                 {"tutti.gathered", trainer ? trainer->gathered : 0}};
    loop_keep_add(r, "format", "pt");
    loop_keep_add(r, "tutti.kind", "checkpoint");
    for (size_t i = 0; i < TUTTI_COUNT(facts); i++) {
        snprintf(r->numbers[i], sizeof r->numbers[i], "%" PRId64, facts[i].value);
        loop_keep_add(r, facts[i].key, r->numbers[i]);
    }
    if (trainer) {
        tutti__number_text(trainer->rate, false, r->numbers[NUMBERS - 1]);
        loop_keep_add(r, "tutti.learning_rate", r->numbers[NUMBERS - 1]);
    }
    TUTTI_TRY(collect_texts(p, r));
    return tutti__engine_snapshot(p->save_resume.engine, &r->snapshot);
}

static tutti_status write_record(void *context)
{
    record *r = context;
    tutti_status status = tutti__checkpoint_write(r->path, &r->snapshot, r->count, r->pairs,
                                                  tutti__checkpoint_shard_bytes());
    if (status == TUTTI_OK)
        tutti__strategy_saved(r->strategy, r->step, r->path);
    free_record(r);
    return status;
}

/* Where the loop stands; its own thread writes it. */
static tutti_status loop_keep_save(tutti_progress *p, bool ended)
{
    tutti_loop_saving *k = &p->save_resume;
    if (!k->saver)
        TUTTI_TRY(tutti__saver_create(&k->saver));
    TUTTI_TRY(tutti__saver_wait(k->saver));
    record *r = calloc(1, sizeof *r);
    if (!r)
        return no_memory();
    r->strategy = tutti_job_strategy(p->job);
    r->step = p->fit.event.step;
    tutti_status status = tutti__checkpoint_path(k->checkpoint, r->path, sizeof r->path);
    if (status == TUTTI_OK)
        status = collect(p, ended, r);
    if (status != TUTTI_OK) {
        free_record(r);
        return status;
    }
    tutti__saver_start(k->saver, write_record, r);
    return TUTTI_OK;
}

/* Values that are each process's own (.on_read) are put together before the first one saves them,
 * and what compressed gradients left out is fetched: whether it is about to, all hear from it. */
static tutti_status loop_keep_join(const tutti_progress *p, bool saves)
{
    const tutti_loop_saving *k = &p->save_resume;
    const tutti_trainer *trainer = k->model ? k->model->trainer : NULL;
    bool slots = !trainer || trainer->gathered > 0;
    if (!k->engine || !k->path ||
        (!tutti__engine_apart(k->engine, slots) && !tutti__engine_gathers(k->engine)))
        return TUTTI_OK;
    int32_t due = saves;
    TUTTI_TRY(tutti__processes_reduce(tutti__engine_strategy(k->engine), "whether to save",
                                      TUTTI_I32, 1, &due, TUTTI_MAX));
    if (!due)
        return TUTTI_OK;
    TUTTI_TRY(tutti__engine_join(k->engine, slots));
    return tutti__engine_gather_all(k->engine);
}

tutti_status tutti__loop_kept_step(tutti_progress *p)
{
    p->halted = tutti_interrupted();
    bool due = writes(p) && (tutti__pace_due(&p->save_resume.pace, p->fit.event.step) || p->halted);
    TUTTI_TRY(loop_keep_join(p, due));
    if (!due)
        return TUTTI_OK;
    tutti_status status = loop_keep_save(p, false);
    if (p->halted)
        return status == TUTTI_OK ? tutti__saver_wait(p->save_resume.saver) : status;
    return tutti__keep_going(p->job, status);
}

tutti_status tutti__loop_kept_epoch(tutti_progress *p)
{
    bool due = writes(p) && !p->halted;
    TUTTI_TRY(loop_keep_join(p, due));
    return due ? tutti__keep_going(p->job, loop_keep_save(p, true)) : TUTTI_OK;
}

/* ---- the end ---- */

/* What is trained of the state, under its names. */
static tutti_status save_weights(const tutti_loop_saving *k)
{
    tutti_state *state = tutti__engine_state(k->engine);
    char path[4096];
    size_t count = 0;
    const tutti_state_variable *v;
    while (tutti__state_at(state, count))
        count++;
    tutti_named_tensor *list = calloc(count + 1, sizeof *list);
    if (!list)
        return no_memory();
    tutti_status status = tutti__checkpoint_path(k->path, path, sizeof path);
    count = 0;
    for (size_t i = 0; status == TUTTI_OK && (v = tutti__state_at(state, i)); i++) {
        if (!v->trainable || v->slot_of[0] || !tutti__state_has_value(state, v->name))
            continue;
        list[count].name = v->name;
        status =
            tutti__engine_get(k->engine, tutti__state_find(state, v->name), &list[count].tensor);
        count += status == TUTTI_OK;
    }
    if (status == TUTTI_OK)
        status = tutti__safetensors_save(path, count, list, 0, NULL,
                                         tutti__checkpoint_shard_bytes(), true);
    for (size_t i = 0; i < count; i++)
        tutti_tensor_release(list[i].tensor);
    free(list);
    return status;
}

tutti_status tutti__loop_kept_end(tutti_progress *p)
{
    const tutti_loop_saving *k = &p->save_resume;
    if (k->saver)
        TUTTI_TRY(tutti__keep_going(p->job, tutti__saver_wait(k->saver)));
    if (tutti_job_check(p->job) != TUTTI_OK)
        return TUTTI_OK;
    if (k->model && k->path)
        return tutti_save_model(k->model, k->path);
    TUTTI_TRY(loop_keep_join(p, true));
    return writes(p) ? save_weights(k) : TUTTI_OK;
}

void tutti__loop_saving_free(tutti_loop_saving *k)
{
    tutti__saver_destroy(k->saver);
    free(k->path);
    free(k->checkpoint);
    *k = (tutti_loop_saving){0};
}

/* ---- going on ---- */

static int64_t number(const tutti_safetensors *file, const char *key)
{
    const char *text = tutti__safetensors_metadata(file, key);
    return text ? (int64_t)strtoull(text, NULL, 10) : 0;
}

static tutti_status restore_shown(tutti_progress *p, const tutti_safetensors *file)
{
    const char *logs = tutti__safetensors_metadata(file, "tutti.logs");
    const char *counts = tutti__safetensors_metadata(file, "tutti.counts");
    tutti_logs read = {0};
    if (logs)
        TUTTI_TRY(tutti__logs_read(logs, &p->job->arena, &p->logs));
    if (counts)
        TUTTI_TRY(tutti__logs_read(counts, &p->job->arena, &read));
    for (int i = 0; i < p->logs.count && i < read.count; i++)
        p->counts[i] = (int64_t)read.items[i].value;
    p->fit.last = p->logs;
    return TUTTI_OK;
}

static void restore_trainer(tutti_model *model, const tutti_safetensors *file)
{
    tutti_trainer *trainer = model ? model->trainer : NULL;
    const char *rate = tutti__safetensors_metadata(file, "tutti.learning_rate");
    if (!trainer)
        return;
    trainer->steps = number(file, "tutti.step");
    trainer->updates = number(file, "tutti.updates");
    trainer->gathered = (int)number(file, "tutti.gathered");
    if (rate)
        trainer->rate = trainer->optimizer.learning_rate = tutti__strtod(rate, NULL);
}

static tutti_status loop_keep_restore(tutti_progress *p, const tutti_safetensors *file,
                                      const char *path)
{
    tutti_event *event = &p->fit.event;
    const char *loops = tutti__safetensors_metadata(file, "tutti.loops");
    if (!loops)
        return tutti_fail(TUTTI_INVALID, "%s is no checkpoint of a loop written by hand", path);
    TUTTI_TRY(tutti__loops_restore(p->job, loops));
    TUTTI_TRY(tutti__checkpoint_restore(file, tutti__engine_state(p->save_resume.engine)));
    TUTTI_TRY(restore_shown(p, file));
    restore_trainer(p->save_resume.model, file);
    bool ended = number(file, "tutti.epoch_ended") != 0;
    event->step = number(file, "tutti.step");
    event->epoch = (int)number(file, "tutti.epoch") - !ended;
    event->batch = number(file, "tutti.batch");
    p->fit.samples = number(file, "tutti.samples");
    p->fit.done = event->epoch + 1;
    p->fit.resumed = event->step;
    p->fit.goes_on = true;
    p->goes_on = !ended;
    p->save_resume.pace.last = tutti__now_ns();
    p->save_resume.pace.step = event->step;
    tutti__log(TUTTI_LOG_INFO, "training goes on from %s, step %lld", path, (long long)event->step);
    return TUTTI_OK;
}

/* Of several processes all have to have found the same. */
static tutti_status loop_keep_compare(const tutti_progress *p, const char *path, uint64_t identity)
{
    char place[4200];
    snprintf(place, sizeof place, "at %s", path);
    return tutti__found_consistent(tutti__engine_strategy(p->save_resume.engine),
                                   &(tutti_found){.place = place,
                                                  .identity = identity,
                                                  .step = identity ? p->fit.event.step : 0});
}

static tutti_status resume(tutti_progress *p)
{
    char path[4096];
    tutti_safetensors *file;
    tutti_error before;
    if (!p->save_resume.path)
        return tutti_fail(TUTTI_INVALID, "--resume: nothing says where the checkpoint is; add "
                                         "--save FILE, as it was given before");
    TUTTI_TRY(tutti__checkpoint_path(p->save_resume.checkpoint, path, sizeof path));
    tutti__error_capture(TUTTI_OK, &before);
    tutti_status status = tutti__checkpoint_open(path, true, &file);
    if (status == TUTTI_NOT_FOUND) {
        tutti__error_restore(&before);
        TUTTI_TRY(loop_keep_compare(p, path, 0));
        tutti__log(TUTTI_LOG_INFO, "--resume: there is no %s yet, training begins anew", path);
        return TUTTI_OK;
    }
    TUTTI_TRY(status);
    uint64_t identity = tutti__checkpoint_identity(file);
    status = loop_keep_restore(p, file, path);
    tutti__safetensors_close(file);
    return status == TUTTI_OK ? loop_keep_compare(p, path, identity) : status;
}

static tutti_status find_engine(tutti_loop_saving *k, const tutti_progress_options *options)
{
    k->model = options->model;
    k->eager = options->eager;
    if (options->model) {
        TUTTI_TRY(tutti__model_engine(options->model));
        k->engine = options->model->engine;
    } else if (options->session) {
        k->engine = tutti__session_engine(options->session);
    } else if (options->eager) {
        k->engine = options->eager->engine;
    }
    /* Variables that were made are initialised when the step ends: not after they were restored. */
    tutti_eager *eager = options->model ? options->model->eager : options->eager;
    return eager ? tutti_eager_step(eager) : TUTTI_OK;
}

tutti_status tutti__loop_keep(tutti_progress *p, const tutti_progress_options *options)
{
    tutti_loop_saving *k = &p->save_resume;
    TUTTI_TRY(find_engine(k, options));
    if (!k->engine)
        return TUTTI_OK;
    const char *save = tutti_flag_text(p->job, "save", NULL);
    bool resumes = tutti_flag_on(p->job, "resume");
    if (save && (!(k->path = strdup(save)) || asprintf(&k->checkpoint, "%s.checkpoint", save) < 0))
        return no_memory();
    if (save)
        k->pace.every = tutti_flag_int(p->job, "save_every", 0);
    if (writes(p)) {
        TUTTI_TRY(tutti__checkpoint_try(k->checkpoint));
        TUTTI_TRY(k->model ? tutti__model_try_place(k->path) : tutti__checkpoint_try(k->path));
    }
    return resumes ? resume(p) : TUTTI_OK;
}
