/* loop.c: what fit shows, for loops written by hand. */
#include <math.h>

#include "base/job.h"
#include "base/world.h"
#include "exec/plan/share.h"
#include "exec/tape/eager.h"
#include "nn/callbacks/loop.h"
#include "nn/model/model_strategy.h"
#include "tutti/strategy.h"

static void tell(tutti_progress *p, size_t which)
{
    tutti_job_fail(p->job, tutti__fit_tell(&p->fit, which));
}

/* The strategy of processes that take the steps of the loop together, or NULL. */
static tutti_strategy *shared_by(const tutti_progress *p)
{
    tutti_strategy *s =
        p->save_resume.engine ? tutti__engine_strategy(p->save_resume.engine) : NULL;
    return tutti__processes_share(s) ? s : NULL;
}

static void hear_own_signal(void)
{
    tutti__interrupt_hear(tutti__interrupt_signal());
}

/* A signal ends the loop at one place of a step (ask), so that whether the epoch is over, what is
 * saved and whether more data comes follow from one answer. Of several processes none ends before
 * all do: each of them would wait for the others. */
static void listen(tutti_progress *p, bool on)
{
    if (p->listening == on)
        return;
    p->listening = on;
    if (on) {
        p->together = shared_by(p) != NULL;
        tutti__interrupt_defer(true);
        tutti__interrupt_begin();
    } else {
        tutti__interrupt_end();
        tutti__interrupt_defer(false);
        if (!p->together)
            hear_own_signal();
    }
}

/* Whether the last step, or what came after it, was one: where it failed, as when another process
 * died, the variables are not those of a step that was done, and nothing of it is counted or saved.
 */
static bool went_well(tutti_progress *p)
{
    const tutti_loop_saving *k = &p->save_resume;
    const tutti_eager *eager = k->model && k->model->eager ? k->model->eager : k->eager;
    if (tutti__job_able(p->job) && eager)
        tutti_job_fail(p->job, tutti__eager_failure(eager));
    return tutti__job_able(p->job);
}

/* Has there been a signal? Of several processes, after the same step: has any of them got one? */
static void ask(tutti_progress *p)
{
    tutti_strategy *strategy = p->together ? shared_by(p) : NULL;
    tutti_poll all = {.rate = NAN, .step = p->fit.event.step};
    if (!p->together)
        hear_own_signal();
    if (!strategy)
        return;
    p->asked = p->fit.event.step + TUTTI_STEPS_UNASKED;
    tutti_job_fail(p->job, tutti__processes_poll(strategy, &all));
}

static void loop_destroy(void *object)
{
    tutti_progress *p = object;
    listen(p, false);
    tutti__fit_end(&p->fit);
    tutti__loop_saving_free(&p->save_resume);
    free(p);
}

static tutti_status add_callbacks(tutti_progress *p)
{
    const char *logs = tutti_flag_text(p->job, "logs", NULL);
    if (tutti_strategy_rank(tutti_job_strategy(p->job)) > 0) /* the first process shows it */
        return tutti_job_check(p->job);
    if (logs)
        TUTTI_TRY(tutti__fit_add(&p->fit, tutti_tensorboard(logs)));
    if (tutti_flag_on(p->job, "json"))
        return tutti__fit_add(&p->fit, tutti_json_lines());
    return tutti_flag_on(p->job, "quiet") ? TUTTI_OK
                                          : tutti__fit_add(&p->fit, tutti_progress_bar());
}

tutti_progress *tutti_progress_open_with(tutti_job *job, int epochs, int64_t steps,
                                         const tutti_progress_options *options)
{
    if (!tutti__job_able(job))
        return NULL;
    tutti_progress *p = calloc(1, sizeof *p);
    if (!p) {
        tutti_job_fail(job, tutti_fail(TUTTI_NO_MEMORY, "no memory to show progress"));
        return NULL;
    }
    p->job = job;
    p->epochs = (int)tutti_flag_int(job, "epochs", epochs);
    p->steps = tutti_flag_int(job, "steps-per-epoch", steps);
    p->fit.event.epochs = p->epochs;
    p->fit.event.epoch = -1;
    p->fit.event.logs = &p->logs;
    tutti_job_fail(job, add_callbacks(p));
    if (!tutti_job_own(job, p, loop_destroy))
        return NULL;
    if (tutti_job_fail(job, tutti__loop_keep(p, options)) != TUTTI_OK)
        return NULL;
    if (tutti_job_fail(job, tutti__loop_foretell(p, options)) != TUTTI_OK)
        return NULL;
    tell(p, TUTTI_AT_EVENT(train_begin));
    listen(p, true);
    return p;
}

static void end_epoch(tutti_progress *p)
{
    tutti_event *event = &p->fit.event;
    p->begun = false;
    if (tutti_job_check(p->job) != TUTTI_OK)
        return;
    event->seconds = 1e-9 * (double)(tutti__now_ns() - p->fit.epoch_started);
    event->batch_count = event->batch;
    p->fit.last = p->logs;
    if (!p->halted)
        p->fit.done = event->epoch + 1;
    tell(p, TUTTI_AT_EVENT(epoch_end));
    if (tutti_job_check(p->job) == TUTTI_OK)
        tutti_job_fail(p->job, tutti__loop_kept_epoch(p));
}

static void end_training(tutti_progress *p)
{
    p->fit.event.interrupted = tutti_interrupted();
    if (tutti_job_check(p->job) == TUTTI_OK)
        tell(p, TUTTI_AT_EVENT(train_end));
    tutti_job_fail(p->job, tutti__loop_kept_end(p));
    tutti__loop_foretold(p);
    listen(p, false);
}

bool tutti_progress_epoch(tutti_progress *p)
{
    if (!p)
        return false;
    tutti_event *event = &p->fit.event;
    if (p->listening && went_well(p))
        ask(p);
    if (p->begun)
        end_epoch(p);
    if (!p->listening)
        return false;
    if (event->epoch + 1 >= p->epochs || !tutti_job_ok(p->job)) {
        end_training(p);
        return false;
    }
    p->begun = true;
    p->fit.epoch_started = tutti__now_ns();
    event->epoch++;
    event->examples = 0;
    if (!p->goes_on) {
        p->logs.count = 0;
        event->batch = 0;
    }
    p->goes_on = false;
    event->batch_count = p->steps > 0 ? p->steps : -1;
    event->seconds = 0;
    tell(p, TUTTI_AT_EVENT(epoch_begin));
    return tutti_job_ok(p->job);
}

bool tutti_progress_step(tutti_progress *p, int64_t examples)
{
    if (!p || !p->begun || !went_well(p))
        return false;
    tutti_event *event = &p->fit.event;
    double seconds = 1e-9 * (double)(tutti__now_ns() - p->fit.epoch_started);
    event->step_seconds = seconds - event->seconds;
    event->seconds = seconds;
    event->examples += examples;
    p->fit.samples += examples;
    event->step++;
    tutti__strategy_at_step(tutti_job_strategy(p->job), event->step + 1);
    tell(p, TUTTI_AT_EVENT(batch_end));
    event->batch++;
    if (p->steps > 0 && event->batch >= p->steps)
        return false;
    if (tutti__job_able(p->job) && event->step >= p->asked)
        ask(p);
    if (tutti_job_check(p->job) == TUTTI_OK)
        tutti_job_fail(p->job, tutti__loop_kept_step(p));
    return tutti_job_ok(p->job);
}

/* Place of a name in the logs, made when it is new; -1 when they are full. */
static int loop_place(tutti_progress *p, const char *name)
{
    for (int i = 0; i < p->logs.count; i++)
        if (strcmp(p->logs.items[i].name, name) == 0)
            return i;
    char *kept = p->logs.count < TUTTI_LOGS ? tutti__arena_string(&p->job->arena, name) : NULL;
    if (!kept)
        return -1;
    p->counts[p->logs.count] = 0;
    p->logs.items[p->logs.count].name = kept;
    p->logs.items[p->logs.count].value = 0;
    return p->logs.count++;
}

/* "loss", "critic_loss". */
static bool is_loss(const char *name)
{
    size_t size = strlen(name);
    return strcmp(name, "loss") == 0 || (size > 5 && strcmp(name + size - 5, "_loss") == 0);
}

void tutti_progress_mean(tutti_progress *p, const char *name, double value)
{
    if (p && isnan(value) && is_loss(name))
        tutti_job_fail(
            p->job, tutti_fail(TUTTI_INVALID,
                               "step %lld (epoch %d): %s is no number: training has diverged, or "
                               "an example is not finite; try a smaller learning rate or clip "
                               "gradients, or leave such examples out with tutti_filter",
                               (long long)p->fit.event.step + 1, p->fit.event.epoch + 1, name));
    int at = p ? loop_place(p, name) : -1;
    if (at >= 0)
        p->logs.items[at].value += (value - p->logs.items[at].value) / (double)++p->counts[at];
}

void tutti_progress_set(tutti_progress *p, const char *name, double value)
{
    int at = p ? loop_place(p, name) : -1;
    if (at >= 0)
        p->logs.items[at].value = value;
}

double tutti_progress_get(const tutti_progress *p, const char *name)
{
    return p ? tutti_logs_get(&p->logs, name) : NAN;
}

int64_t tutti_progress_steps(const tutti_progress *p)
{
    return p ? p->fit.event.step : 0;
}

int tutti_progress_current_epoch(const tutti_progress *p)
{
    return p ? p->fit.event.epoch : -1;
}
