/* show.c: `tutti show`: what is in a file, at a glance. Each kind of file is one viewer. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/printable.h"
#include "base/world.h"
#include "cli/command.h"
#include "cli/viewer.h"
#include "io/json.h"
#include "tables/viewer.h"

static const char usage[] =
    "usage: tutti show FILE [--json]\n\n"
    "Says what is in FILE: a checkpoint or weights (.safetensors, .index.json), a model (.json),\n"
    "ONNX, TensorBoard events, a graph written by Tutti, or data: IDX, NPY, NPZ, TFRecord, CIFAR's\n"
    "binary form, CSV and texts (also gzip), JPEG, PNG. The kind is found from the contents, else by\n"
    "the name. Of a folder: its files and their kinds, and the images of each class.\n\n"
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

void tutti__print_quoted(const char *text)
{
    tutti_text to = {0};
    tutti_json_writer w = {.text = &to};
    tutti__json_put_string(&w, text);
    if (tutti__json_finish(&w) == TUTTI_OK)
        fwrite(to.data, 1, to.size, stdout);
    else
        printf("\"?\"");
    tutti__text_free(&to);
}

static void print_safe(const char *text, const char *kept, int width)
{
    size_t size = tutti__printable(text, kept, NULL, 0) + 1;
    char *safe = malloc(size);
    if (safe)
        tutti__printable(text, kept, safe, size);
    printf("%-*s", width, safe ? safe : "?");
    free(safe);
}

void tutti__print_name(const char *name, int width)
{
    print_safe(name, "", width);
}

void tutti__print_text(const char *text)
{
    print_safe(text, "\n\t", 0);
}

void tutti__print_real(double value)
{
    if (isfinite(value))
        printf("%.9g", value);
    else
        printf("null");
}

void tutti__show_tensor(const char *name, const tutti_type *type, int64_t bytes, bool json)
{
    char text[TUTTI_TYPE_TEXT];
    if (json) {
        printf("{\"name\":");
        tutti__print_quoted(name);
        printf(",\"type\":\"%s\",\"bytes\":%" PRId64 "}\n", tutti_type_text(type, text), bytes);
    } else {
        printf("  ");
        tutti__print_name(name, 44);
        printf(" %-24s %12" PRId64 "\n", tutti_type_text(type, text), bytes);
    }
}

static const tutti_viewer *find_viewer(const tutti_glance *glance)
{
    const tutti_viewer *best = NULL;
    int score = 0;
    for (const tutti_viewer *const *viewer = tutti__viewer_table; *viewer; viewer++) {
        int own = (*viewer)->recognise(glance);
        if (own > score)
            score = own, best = *viewer;
    }
    return best;
}

/* ---- folders ---- */

static tutti_status list_folder(const char *path, char ***ret_names, size_t *ret_count)
{
    const tutti_world *world = tutti__world();
    return world->list_folder(world->self, path, ret_names, ret_count);
}

static bool is_image(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return false;
}

static void print_entry(const char *name, const char *kind, int64_t size, bool json)
{
    if (json) {
        printf("{\"name\":");
        tutti__print_quoted(name);
        printf(",\"kind\":\"%s\",\"size\":%" PRId64 "}\n", kind, size);
    } else {
        printf("  ");
        tutti__print_name(name, 44);
        printf(" %-32s %12" PRId64 "\n", kind, size);
    }
}

/* What the last error says behind the path that it names. */
static const char *reason_of(const char *path)
{
    const char *message = tutti_error_message(), *at = strstr(message, path);
    if (!at)
        return message;
    at += strlen(path);
    return at + strspn(at, "': ");
}

static void print_unreadable(const char *name, const char *reason, bool json)
{
    if (!json) {
        printf("  ");
        tutti__print_name(name, 44);
        printf(" cannot be read: %s\n", reason);
        return;
    }
    printf("{\"name\":");
    tutti__print_quoted(name);
    printf(",\"problem\":");
    tutti__print_quoted(reason);
    printf("}\n");
}

/* A folder with its number of images, a file with its kind and bytes, or why it is neither. */
static void show_entry(const char *folder, const char *name, bool json)
{
    char path[4096], **names;
    size_t count, images = 0;
    tutti_glance glance;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
        print_unreadable(name, "its path is too long", json);
    } else if (list_folder(path, &names, &count) == TUTTI_OK) {
        for (size_t i = 0; i < count; i++)
            images += is_image(names[i]);
        print_entry(name, images ? "folder of images" : "folder",
                    (int64_t)(images ? images : count), json);
        free(names);
    } else if (look(path, &glance) == TUTTI_OK) {
        const tutti_viewer *viewer = find_viewer(&glance);
        print_entry(name, viewer ? viewer->kind : "file", glance.size, json);
    } else {
        print_unreadable(name, reason_of(path), json);
    }
}

static int show_folder(const char *folder, size_t count, char *const *names, bool json)
{
    if (!json)
        printf("%s: folder, %zu entries\n", folder, count);
    for (size_t i = 0; i < count; i++)
        show_entry(folder, names[i], json);
    return TUTTI_EXIT_OK;
}

int tutti__show_path(const char *path, bool json)
{
    tutti_glance glance;
    char **names;
    size_t count;
    if (list_folder(path, &names, &count) == TUTTI_OK) {
        int code = show_folder(path, count, names, json);
        free(names);
        return code;
    }
    if (look(path, &glance) != TUTTI_OK)
        return tutti__complain("%s", tutti_error_message());
    const tutti_viewer *best = find_viewer(&glance);
    if (!best)
        return tutti__complain("%s is of no kind that Tutti knows", path);
    if (!json)
        printf("%s: %s, %" PRId64 " bytes\n", path, best->kind, glance.size);
    if (best->show(&glance, json) != TUTTI_OK)
        return tutti__complain("%s", tutti_error_message());
    return TUTTI_EXIT_OK;
}

static int show_run(int argc, char **argv)
{
    bool json = tutti__flag(&argc, argv, "--json");
    if (!tutti__knows_flags(usage, argc, argv))
        return TUTTI_EXIT_USAGE;
    if (argc != 2)
        return tutti__complain("show takes one FILE, and --json; --help tells more"),
               TUTTI_EXIT_USAGE;
    return tutti__show_path(argv[1], json);
}

const tutti_command tutti_command_show = {
    .name = "show",
    .summary = "what is in a file or folder: checkpoint, model, ONNX, events, graph, data",
    .usage = usage,
    .run = show_run,
};
