/* show.c: `tutti show`: what is in a file, at a glance. Each kind of file is one viewer. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "cli/command.h"
#include "cli/viewer.h"
#include "tables/viewer.h"

static const char usage[] =
    "usage: tutti show FILE [--json]\n\n"
    "Says what is in FILE: a checkpoint or weights (.safetensors, .index.json), a model (.json),\n"
    "ONNX, TensorBoard events, NPY and NPZ, TFRecord, IDX, or a graph written by Tutti.\n"
    "The kind is found from the contents.\n\n"
    "exit codes: 0 success, 1 the file cannot be read or is damaged, 2 wrong usage\n";

/* The first bytes of a file, and its name. */
static tutti_status look(const char *path, tutti_glance *ret)
{
    const tutti_world *world = tutti__world();
    tutti_file *file;
    *ret = (tutti_glance){.path = path};
    TUTTI_TRY(world->open_file(world->self, path, TUTTI_FILE_READ, &file, &ret->size));
    tutti_status status =
        world->read_at(world->self, file, 0, ret->head, sizeof ret->head, &ret->head_size);
    world->close_file(world->self, file, false);
    return status;
}

bool tutti__ends_with(const char *text, const char *ending)
{
    size_t n = strlen(text), e = strlen(ending);
    return n >= e && strcmp(text + n - e, ending) == 0;
}

void tutti__show_tensor(const char *name, const tutti_type *type, int64_t bytes, bool json)
{
    char text[TUTTI_TYPE_TEXT];
    if (json)
        printf("{\"name\":\"%s\",\"type\":\"%s\",\"bytes\":%" PRId64 "}\n", name,
               tutti_type_text(type, text), bytes);
    else
        printf("  %-44s %-24s %12" PRId64 "\n", name, tutti_type_text(type, text), bytes);
}

static int run(int argc, char **argv)
{
    bool json = tutti__flag(&argc, argv, "--json");
    tutti_glance glance;
    if (argc != 2)
        return tutti__complain("show takes one FILE; --help tells more"), TUTTI_EXIT_USAGE;
    if (look(argv[1], &glance) != TUTTI_OK)
        return tutti__complain("%s", tutti_error_message());
    const tutti_viewer *best = NULL;
    int score = 0;
    for (const tutti_viewer *const *viewer = tutti__viewer_table; *viewer; viewer++) {
        int own = (*viewer)->recognise(&glance);
        if (own > score)
            score = own, best = *viewer;
    }
    if (!best)
        return tutti__complain("%s is of no kind that Tutti knows", argv[1]);
    if (!json)
        printf("%s: %s, %" PRId64 " bytes\n", argv[1], best->kind, glance.size);
    if (best->show(&glance, json) != TUTTI_OK)
        return tutti__complain("%s", tutti_error_message());
    return TUTTI_EXIT_OK;
}

const tutti_command tutti_command_show = {
    .name = "show",
    .summary = "what is in a file: checkpoint, model, ONNX, events, arrays, graph",
    .usage = usage,
    .run = run,
};
