/* resume.c: where a training goes on from. */
#include <stdio.h>

#include "base/log.h"
#include "nn/callbacks/checkpoint.h"
#include "nn/training/consistency.h"
#include "tutti/checkpoint.h"

/* Looks for the step of one file; what is wrong with it is noted. */
static int64_t look_at(const char *file, tutti_error *damage)
{
    int64_t step = -1;
    tutti_status status = tutti__checkpoint_peek(file, &step);
    if (status == TUTTI_OK && step < 0)
        status = tutti_fail(TUTTI_INVALID, "%s.safetensors is no checkpoint of a training", file);
    if (status != TUTTI_OK && status != TUTTI_NOT_FOUND) {
        tutti__log_job(TUTTI_LOG_WARNING, "%s; it is passed over", tutti_error_message());
        tutti__error_capture(status, damage);
    }
    return step;
}

/* The farthest good one. *ret_step is -1 where there is none at all. */
static tutti_status resume_find(const char *folder, const char *file, size_t size, char *ret_path,
                                int64_t *ret_step)
{
    tutti_error before, damage = {.status = TUTTI_OK};
    tutti__error_capture(TUTTI_OK, &before);
    *ret_step = -1;
    tutti_status status = folder
                              ? tutti__checkpoint_latest(folder, size, ret_path, ret_step, &damage)
                              : TUTTI_NOT_FOUND;
    if (status != TUTTI_NOT_FOUND)
        TUTTI_TRY(status);
    int64_t own = file ? look_at(file, &damage) : -1;
    tutti__error_restore(&before);
    if (own > *ret_step) {
        snprintf(ret_path, size, "%s", file);
        *ret_step = own;
    }
    if (*ret_step >= 0 || damage.status == TUTTI_OK)
        return TUTTI_OK;
    return tutti_fail(damage.status,
                      "the checkpoint to go on from is there and cannot be used: %s; move it away "
                      "to begin anew, which would write over it",
                      damage.message);
}

/* Of several processes all have to have found the same. */
static tutti_status resume_compare(const tutti_model *model, const char *folder, const char *file,
                                   bool found)
{
    char place[4096];
    const tutti_trainer *trainer = model->trainer;
    snprintf(place, sizeof place, "%s%.1500s%s%.1500s%s", folder ? "in " : "", folder ? folder : "",
             !file    ? ""
             : folder ? " or at "
                      : "at ",
             file ? file : "", file ? ".safetensors" : "");
    return tutti__found_consistent(tutti__model_strategy(model),
                                   &(tutti_found){.place = place,
                                                  .identity = found ? trainer->identity : 0,
                                                  .step = found ? trainer->steps : 0});
}

tutti_status tutti__resume_from(tutti_model *model, const char *folder, const char *file,
                                bool *ret_found)
{
    char path[4096];
    int64_t step;
    TUTTI_TRY(resume_find(folder, file, sizeof path, path, &step));
    *ret_found = step >= 0;
    if (*ret_found)
        TUTTI_TRY(tutti_restore_checkpoint(model, path));
    TUTTI_TRY(resume_compare(model, folder, file, *ret_found));
    if (*ret_found)
        tutti__log(TUTTI_LOG_INFO, "training goes on from %s, step %lld", path,
                   (long long)tutti_model_steps(model));
    return TUTTI_OK;
}
