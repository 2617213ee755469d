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

static bool has_backup(const tutti_fit *fit)
{
    for (size_t i = 0; i < fit->callbacks.count; i++)
        if (tutti__is_backup(fit->callbacks.data[i]))
            return true;
    return false;
}

tutti_status tutti__fit_add_standard(tutti_fit *fit, bool quiet)
{
    tutti_job *job = fit->model->job;
    char folder[4096];
    const char *logs = tutti_flag_text(job, "logs", NULL);
    const char *save = tutti_flag_text(job, "save", NULL);
    bool resume = tutti_flag_on(job, "resume") && !has_backup(fit);
    if (save || resume) {
        bool found = find_folder(fit, sizeof folder, folder);
        TUTTI_TRY(tutti__fit_add(fit, tutti__keeper(save, resume, found ? folder : NULL)));
    }
    if (logs)
        TUTTI_TRY(tutti__fit_add(fit, tutti_tensorboard(logs)));
    if (tutti_flag_on(job, "json"))
        return tutti__fit_add(fit, tutti_json_lines());
    if (quiet || tutti_flag_on(job, "quiet"))
        return TUTTI_OK;
    return tutti__fit_add(fit, tutti_progress_bar());
}
