/* standard.c: the callbacks that flags ask for. */
#include "nn/callbacks/checkpoint.h"

/* The folder of the first callback that saves checkpoints; false when there is none. */
static bool find_folder(const tutti_fit *fit, size_t size, char *ret_folder)
{
    for (size_t i = 0; i < fit->callbacks.count; i++)
        if (tutti__checkpoint_folder(fit->callbacks.data[i], size, ret_folder))
            return true;
    return false;
}

static bool is(const tutti_callback *callback, const char *kind)
{
    return callback->kind->name && strcmp(callback->kind->name, kind) == 0;
}

static bool has(const tutti_fit *fit, const char *kind)
{
    for (size_t i = 0; i < fit->callbacks.count; i++)
        if (is(fit->callbacks.data[i], kind))
            return true;
    return false;
}

/* Does a program write its curves there itself? */
static bool has_board_in(const tutti_fit *fit, const char *folder)
{
    for (size_t i = 0; i < fit->callbacks.count; i++)
        if (tutti__is_board_in(fit->callbacks.data[i], folder))
            return true;
    return false;
}

/* What shows the training comes first, so that its line has ended when the user's callbacks print.
 */
static tutti_status add_first(tutti_fit *fit, tutti_callback *callback)
{
    TUTTI_TRY(tutti__fit_add(fit, callback));
    memmove(fit->callbacks.data + 1, fit->callbacks.data,
            (fit->callbacks.count - 1) * sizeof *fit->callbacks.data);
    fit->callbacks.data[0] = callback;
    return TUTTI_OK;
}

static tutti_status add_display(tutti_fit *fit, bool quiet)
{
    tutti_job *job = fit->model->job;
    if (has(fit, "progress_bar") || has(fit, "json_lines"))
        return TUTTI_OK;
    if (tutti_flag_on(job, "json"))
        return add_first(fit, tutti_json_lines());
    return quiet || tutti_flag_on(job, "quiet") ? TUTTI_OK : add_first(fit, tutti_progress_bar());
}

tutti_status tutti__fit_add_standard(tutti_fit *fit, bool quiet)
{
    tutti_job *job = fit->model->job;
    char folder[4096];
    const char *logs = tutti_flag_text(job, "logs", NULL);
    const char *save = tutti_flag_text(job, "save", NULL);
    if (tutti_flag_text(job, "plan-ranks", NULL))
        return tutti__fit_add(fit, tutti__plan_printer());
    bool resume = tutti_flag_on(job, "resume") && !has(fit, "backup");
    if (save || resume) {
        bool found = find_folder(fit, sizeof folder, folder);
        int64_t every = save ? tutti_flag_int(job, "save_every", 0) : 0;
        TUTTI_TRY(tutti__fit_add(
            fit, tutti__training_save_resume(save, resume, found ? folder : NULL, every)));
    }
    if (save)
        TUTTI_TRY(tutti__fit_add(fit, tutti__model_save_resume(save)));
    if (logs && !has_board_in(fit, logs))
        TUTTI_TRY(tutti__fit_add(fit, tutti_tensorboard(logs)));
    TUTTI_TRY(add_display(fit, quiet));
    fit->accounts = has(fit, "progress_bar") || tutti_flag_on(job, "forecast");
    return TUTTI_OK;
}
