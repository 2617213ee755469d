/* standard.c: the callbacks that flags ask for. */
#include "nn/callback.h"

tutti_status tutti__fit_add_standard(tutti_fit *fit, bool quiet)
{
    tutti_job *job = fit->model->job;
    if (quiet || tutti_flag_on(job, "quiet") || tutti_flag_on(job, "json"))
        return TUTTI_OK;
    return tutti__fit_add(fit, tutti__progress_bar());
}
