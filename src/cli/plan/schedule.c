/* schedule.c: `tutti plan schedule`: schedules of a pipeline, drawn and compared. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/plan/plan.h"
#include "parallel/pipeline/picture.h"
#include "tables/pipeline_schedule_kind.h"

typedef struct schedule_plan {
    int64_t stages, micro, chunks, columns;
    tutti_stage_cost cost; /* of a device; a chunk takes its part */
    const char *only, *svg;
    bool json;
} schedule_plan;

static bool read_cost(int *argc, char **argv, const char *name, double *ret)
{
    const char *text;
    char *end;
    if (!tutti__option(argc, argv, name, &text))
        return true;
    *ret = strtod(text, &end);
    if (end != text && !*end && *ret >= 0 && *ret <= 1e12)
        return true;
    tutti__complain("%s takes a time, in any unit that is the same for all, not '%s'", name, text);
    return false;
}

static bool read_plan(int *argc, char **argv, schedule_plan *p)
{
    *p = (schedule_plan){.columns = 96, .cost = {1, 1, 1, 0, 0}};
    p->json = tutti__flag(argc, argv, "--json");
    (void)tutti__option(argc, argv, "--schedule", &p->only);
    (void)tutti__option(argc, argv, "--svg", &p->svg);
    if (!tutti__option_int(argc, argv, "--stages", 1, 4096, &p->stages) ||
        !tutti__option_int(argc, argv, "--micro", 1, 65536, &p->micro) ||
        !tutti__option_int(argc, argv, "--chunks", 1, 64, &p->chunks) ||
        !tutti__option_int(argc, argv, "--columns", 20, 1000, &p->columns) ||
        !read_cost(argc, argv, "--forward", &p->cost.forward) ||
        !read_cost(argc, argv, "--backward", &p->cost.backward) ||
        !read_cost(argc, argv, "--weight", &p->cost.weight) ||
        !read_cost(argc, argv, "--send", &p->cost.send))
        return false;
    p->cost.send_gradient = p->cost.send;
    if (*argc > 2)
        tutti__complain("plan schedule does not know '%s'; see tutti plan --help", argv[2]);
    else if (p->stages == 0 || p->micro == 0)
        tutti__complain("plan schedule needs --stages and --micro; see tutti plan --help");
    else if (p->svg && !p->only)
        tutti__complain("--svg draws one schedule: name it, --schedule 1f1b");
    else
        return true;
    return false;
}

static tutti_status write_svg(const char *path, const tutti_text *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text->data ? text->data : "", file) < 0 || fclose(file) != 0)
        return tutti_fail(TUTTI_IO, "cannot write '%s': %s", path, strerror(errno));
    return TUTTI_OK;
}

static int most_held(const tutti_pipeline_schedule *s, const tutti_pipeline_times *times)
{
    int most = 0;
    for (int d = 0; d < s->devices; d++)
        most = times->peak[d] > most ? times->peak[d] : most;
    return most;
}

static tutti_status show(const schedule_plan *p, const tutti_pipeline_schedule *s,
                         const tutti_pipeline_times *times)
{
    char title[160];
    int most = most_held(s, times);
    tutti_text text = {0};
    tutti_status status = TUTTI_OK;
    snprintf(title, sizeof title,
             "%s, %d device%s%s, %d micro-batches: idle %.1f %%; at most %d micro-batch%s held",
             s->kind->name, s->devices, s->devices == 1 ? "" : "s",
             s->chunks > 1 ? " with several stages each" : "", s->micro, 100 * times->idle, most,
             most == 1 ? "" : "es");
    if (p->json) {
        printf("{\"schedule\":\"%s\",\"devices\":%d,\"chunks\":%d,\"micro\":%d,\"time\":%.9g,"
               "\"idle\":%.6f,\"held\":%d}\n",
               s->kind->name, s->devices, s->chunks, s->micro, times->end, times->idle, most);
    } else {
        tutti__pipeline_draw_text(s, times, (int)p->columns, &text);
        printf("%s; a step takes %.6g\n%s\n", title, times->end, text.data ? text.data : "");
        tutti__text_free(&text);
    }
    if (p->svg) {
        text = (tutti_text){0};
        tutti__pipeline_draw_svg(s, times, title, &text);
        status = write_svg(p->svg, &text);
        tutti__text_free(&text);
    }
    return status;
}

static tutti_status simulate_kind(const schedule_plan *p, const tutti_pipeline_schedule_kind *kind)
{
    tutti_pipeline_schedule *s;
    tutti_pipeline_times times = {0};
    TUTTI_TRY(
        tutti__pipeline_schedule_create(kind, (int)p->stages, (int)p->chunks, (int)p->micro, &s));
    tutti_stage_cost *costs = calloc((size_t)s->stages, sizeof *costs);
    tutti_status status =
        costs ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to simulate a schedule");
    for (int i = 0; costs && i < s->stages; i++)
        costs[i] = (tutti_stage_cost){.forward = p->cost.forward / s->chunks,
                                      .backward = p->cost.backward / s->chunks,
                                      .weight = p->cost.weight / s->chunks,
                                      .send = p->cost.send,
                                      .send_gradient = p->cost.send_gradient};
    if (status == TUTTI_OK)
        status = tutti__pipeline_schedule_simulate(s, costs, &times);
    if (status == TUTTI_OK) {
        status = show(p, s, &times);
        tutti__pipeline_times_free(s, &times);
    }
    free(costs);
    tutti__pipeline_schedule_free(s);
    return status;
}

/* Without a name all that can be: with chunks those that take them, and without micro-batches that
 * divide not interleaved. */
static bool is_possible(const schedule_plan *p, const tutti_pipeline_schedule_kind *kind)
{
    return (p->chunks <= 1 || kind->chunks) && (!kind->chunks || p->micro % p->stages == 0);
}

int tutti__plan_schedule(int argc, char **argv)
{
    schedule_plan p;
    const tutti_pipeline_schedule_kind *kind;
    if (!read_plan(&argc, argv, &p))
        return TUTTI_EXIT_USAGE;
    if (p.only) {
        if (tutti__pipeline_schedule_find(p.only, &kind) != TUTTI_OK ||
            simulate_kind(&p, kind) != TUTTI_OK)
            return tutti__complain("%s", tutti_error_message());
        return TUTTI_EXIT_OK;
    }
    for (const tutti_pipeline_schedule_kind *const *k = tutti__pipeline_schedule_kind_table; *k;
         k++)
        if (is_possible(&p, *k) && simulate_kind(&p, *k) != TUTTI_OK)
            return tutti__complain("%s", tutti_error_message());
    return TUTTI_EXIT_OK;
}
