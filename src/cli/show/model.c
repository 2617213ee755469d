/* model.c: a model's architecture in JSON: its summary. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "base/world.h"
#include "cli/viewer.h"

static int recognise(const tutti_glance *glance)
{
    return tutti__ends_with(glance->path, ".json") && glance->head_size > 0 &&
           glance->head[0] == '{' && !tutti__ends_with(glance->path, ".index.json");
}

/* Its summary, or the text as it is, once it is known to be a model's. */
static tutti_status tell(tutti_job *job, const char *text, bool json)
{
    tutti_model *model = tutti_model_from_json(job, text);
    char *summary;
    TUTTI_TRY(tutti_job_check(job));
    if (json) {
        printf("%s\n", text);
        return TUTTI_OK;
    }
    tutti_status status = tutti_model_build(model, 0, NULL);
    if (status == TUTTI_OK)
        status = tutti_summary(model, 1, &summary);
    if (status != TUTTI_OK)
        return status;
    fputs(summary, stdout);
    free(summary);
    return TUTTI_OK;
}

static tutti_status show(const tutti_glance *glance, bool json)
{
    const tutti_world *world = tutti__world();
    void *text;
    size_t size;
    TUTTI_TRY(world->read_file(world->self, glance->path, (size_t)256 << 20, &text, &size));
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_status status = tell(job, text, json);
    tutti__job_discard(job);
    free(text);
    return status;
}

const tutti_viewer tutti_viewer_model = {
    .kind = "model",
    .recognise = recognise,
    .show = show,
};
