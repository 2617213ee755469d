/* run.c: runs the passes of a stage, in order, and dumps the graph after each when asked to. */
#include <ctype.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "base/world.h"
#include "passes/group.h"
#include "passes/pass.h"
#include "tables/pass.h"

static const tutti_param dump_param =
    TUTTI_PARAM("DUMP", "", "what to write out, separated by commas: passes");
static const tutti_param folder_param =
    TUTTI_PARAM("DUMP_DIR", "tutti-dump", "folder that TUTTI_DUMP writes into");

enum { MAX_PASSES = 64 };

/* Equal orders go by name, which is how the table is sorted. */
static int passes_of(tutti_pass_stage stage, const tutti_pass **ret)
{
    int count = 0;
    for (const tutti_pass *const *pass = tutti__pass_table; *pass != NULL; pass++) {
        if ((*pass)->stage != stage || count == MAX_PASSES)
            continue;
        int at = count++;
        for (; at > 0 && ret[at - 1]->order > (*pass)->order; at--)
            ret[at] = ret[at - 1];
        ret[at] = *pass;
    }
    return count;
}

static tutti_status read_dump(bool *ret_passes)
{
    const char *at = tutti__param_text(&dump_param);
    *ret_passes = false;
    while (*at != '\0') {
        size_t size = strcspn(at, ",");
        bool passes = size == strlen("passes") && strncmp(at, "passes", size) == 0;
        if (!passes && size > 0)
            return tutti_fail(TUTTI_INVALID,
                              "TUTTI_DUMP: there is no '%.*s' to write; there is: "
                              "passes",
                              (int)size, at);
        *ret_passes = *ret_passes || passes;
        at += size + (at[size] == ',');
    }
    return TUTTI_OK;
}

/* Labels hold device names; what no file name should hold becomes an underscore. */
static void add_label(tutti_text *path, const char *label)
{
    for (const char *at = label != NULL ? label : "job"; *at != '\0'; at++)
        tutti__text_add(path, "%c", isalnum((unsigned char)*at) || strchr("._", *at) ? *at : '_');
}

static tutti_status write_dump(const char *stem, const char *ending, const char *head,
                               const char *text)
{
    const tutti_world *world = tutti__world();
    tutti_text path = {0}, content = {0};
    tutti__text_add(&path, "%s.%s", stem, ending);
    tutti__text_add(&content, "%s%s", head, text);
    tutti_status status =
        path.failed || content.failed
            ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a dump")
            : world->write_file(world->self, path.data, content.data, content.size);
    tutti__text_free(&path);
    tutti__text_free(&content);
    return status;
}

static tutti_status dump_graph(const tutti_graph *graph, const char *stem, const char *head)
{
    char *text = NULL, *dot = NULL;
    tutti_status status = tutti_graph_print(graph, &text);
    if (status == TUTTI_OK)
        status = tutti_graph_dot(graph, &dot);
    if (status == TUTTI_OK)
        status = write_dump(stem, "txt", head, text);
    if (status == TUTTI_OK)
        status = write_dump(stem, "dot", "", dot);
    free(text);
    free(dot);
    return status;
}

/* A dump that cannot be written is no reason to stop a job: it is said, once. */
static void dump(const tutti_graph *graph, const char *label, const char *pass, int changes)
{
    static atomic_uint serial;
    static atomic_flag told = ATOMIC_FLAG_INIT;
    const tutti_world *world = tutti__world();
    const char *folder = tutti__param_text(&folder_param);
    tutti_text stem = {0}, head = {0};
    tutti__text_add(&stem, "%s/%03u-", folder, atomic_fetch_add(&serial, 1));
    add_label(&stem, label);
    tutti__text_add(&stem, "-%s", pass);
    tutti__text_add(&head, "# %s: %d changes, %zu nodes\n", pass, changes, graph->nodes.count);
    tutti_status status = stem.failed || head.failed
                              ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a dump")
                              : world->make_folder(world->self, folder);
    if (status == TUTTI_OK)
        status = dump_graph(graph, stem.data, head.data);
    if (status != TUTTI_OK && !atomic_flag_test_and_set(&told))
        tutti__log_job(TUTTI_LOG_WARNING, "TUTTI_DUMP=passes: %s", tutti_error_message());
    tutti__text_free(&stem);
    tutti__text_free(&head);
}

tutti_status tutti__passes_run(tutti_pass_stage stage, tutti_graph *graph,
                               const tutti_pass_context *context, const char *label)
{
    const tutti_pass *passes[MAX_PASSES] = {0};
    int count = passes_of(stage, passes);
    bool dumping;
    TUTTI_TRY(read_dump(&dumping));
    TUTTI_TRY(tutti__group_check_setting());
    if (dumping)
        dump(graph, label, stage == TUTTI_PASS_JOB ? "start" : "piece", 0);
    for (int i = 0; i < count; i++) {
        int changes = 0;
        tutti_status status = passes[i]->run(graph, context, &changes);
        if (status != TUTTI_OK)
            return tutti__error_prefix(status, "pass '%s'", passes[i]->name);
        if (changes > 0)
            tutti__log(TUTTI_LOG_DEBUG, "pass %s: %d changes, %zu nodes", passes[i]->name, changes,
                       graph->nodes.count);
        if (dumping)
            dump(graph, label, passes[i]->name, changes);
    }
    return TUTTI_OK;
}
