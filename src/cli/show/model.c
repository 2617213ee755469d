/* model.c: a model's architecture in JSON: its summary. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "base/world.h"
#include "cli/viewer.h"
#include "io/json.h"
#include "nn/training/config.h"

static int recognise(const tutti_glance *glance)
{
    return tutti__ends_with(glance->path, ".json") && glance->head_size > 0 &&
           glance->head[0] == '{' && !tutti__ends_with(glance->path, ".index.json");
}

/* The same text on one line. */
static tutti_status print_line(tutti_job *job, const char *text, size_t size)
{
    const tutti_json *root;
    tutti_text line = {0};
    tutti_json_writer w = {.text = &line};
    TUTTI_TRY(tutti__json_parse("the model", text, size, NULL, &job->arena, &root));
    tutti__json_put(&w, root);
    tutti_status status = tutti__json_finish(&w);
    if (status == TUTTI_OK)
        printf("%s\n", line.data);
    tutti__text_free(&line);
    return status;
}

/* Its summary, or its text, once it is known to be a model's. */
static tutti_status tell(tutti_job *job, const char *text, size_t size, bool json)
{
    tutti_model *model;
    char *summary;
    TUTTI_TRY(tutti_job_check(job));
    TUTTI_TRY(tutti__model_of_json(job, &(tutti_config_source){.prefix = "", .blank = true}, text,
                                   &model));
    if (json)
        return print_line(job, text, size);
    tutti_status status = (tutti_build)(model, 0, NULL);
    if (status == TUTTI_OK)
        status = tutti_summary(model, 1, &summary);
    if (status != TUTTI_OK)
        return status;
    tutti__print_text(summary);
    free(summary);
    return TUTTI_OK;
}

static tutti_status model_show(const tutti_glance *glance, bool json)
{
    const tutti_world *world = tutti__world();
    void *text;
    size_t size;
    TUTTI_TRY(world->read_file(world->self, glance->path, (size_t)256 << 20, &text, &size));
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_status status = tell(job, text, size, json);
    tutti__job_discard(job);
    free(text);
    return status;
}

const tutti_viewer tutti_viewer_model = {
    .kind = "model",
    .recognise = recognise,
    .show = model_show,
};
