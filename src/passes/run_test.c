/* The order of passes, and dumps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "base/world.h"
#include "passes/pass.h"
#include "tables/pass.h"

static tutti_graph *small_graph(void)
{
    tutti_graph *graph;
    tutti_node *x, *y;
    tutti_attr attrs[] = {TUTTI_INT("index", 0), TUTTI_INT("dtype", TUTTI_F32),
                          TUTTI_INTS("dims", 1, (int64_t[]){3})};
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_OK(tutti__node_add(graph, tutti_op_find("parameter"), "x", 0, NULL, 3, attrs, &x));
    CHECK_OK(tutti__node_add(graph, tutti_op_find("identity"), "y", 1, &(tutti_edge){x, 0}, 0, NULL,
                             &y));
    CHECK_OK(tutti__graph_result(graph, (tutti_edge){y, 0}));
    return graph;
}

TUTTI_TEST(passes_have_names_docs_and_orders)
{
    for (const tutti_pass *const *pass = tutti__pass_table; *pass != NULL; pass++) {
        CHECK((*pass)->name != NULL && (*pass)->doc != NULL && (*pass)->run != NULL);
        CHECK((*pass)->order > 0);
        for (const tutti_pass *const *other = tutti__pass_table; other < pass; other++)
            CHECK(strcmp((*other)->name, (*pass)->name) != 0 &&
                  ((*other)->stage != (*pass)->stage || (*other)->order != (*pass)->order));
    }
}

TUTTI_TEST(passes_run_rewrites_a_job)
{
    tutti_graph *graph = small_graph();
    tutti_pass_context context = {0};
    CHECK_OK(tutti__passes_run(TUTTI_PASS_JOB, graph, &context, "job"));
    CHECK_INT(graph->nodes.count, 1);
    CHECK_STR(graph->results.data[0].node->name, "x");
    tutti_graph_destroy(graph);
}

/* A world that remembers the files that are written. */
static struct {
    int folders, files;
    char names[4096], simplified[1024];
} seen;

static tutti_status note_file(void *self, const char *path, const void *data, size_t size)
{
    TUTTI_UNUSED(self);
    CHECK(strlen(seen.names) + strlen(path) + 2 < sizeof seen.names);
    strcat(strcat(seen.names, path), "\n");
    if (strstr(path, "simplify.txt") != NULL)
        snprintf(seen.simplified, sizeof seen.simplified, "%.*s", (int)size, (const char *)data);
    seen.files++;
    return TUTTI_OK;
}

static tutti_status note_folder(void *self, const char *path)
{
    TUTTI_UNUSED(self);
    CHECK_STR(path, "there/it is");
    seen.folders++;
    return TUTTI_OK;
}

TUTTI_TEST(passes_run_dumps_every_graph)
{
    tutti_world world = *tutti__world();
    world.write_file = note_file;
    world.make_folder = note_folder;
    tutti_graph *graph = small_graph();
    tutti_pass_context context = {0};
    memset(&seen, 0, sizeof seen);
    tutti__world_replace(&world);
    CHECK_OK(tutti__param_set("DUMP", ",passes,"));
    CHECK_OK(tutti__param_set("DUMP_DIR", "there/it is"));
    tutti_status status = tutti__passes_run(TUTTI_PASS_JOB, graph, &context, "/cpu:0");
    tutti__world_replace(NULL);
    CHECK_OK(tutti__param_set("DUMP", NULL));
    CHECK_OK(tutti__param_set("DUMP_DIR", NULL));
    CHECK_OK(status);
    CHECK(seen.folders > 4);
    CHECK_INT(seen.files, 2 * seen.folders);
    CHECK_CONTAINS(seen.names, "-_cpu_0-fold.dot\n");
    CHECK_CONTAINS(seen.names, "there/it is/0");
    CHECK_CONTAINS(seen.simplified, "# simplify: 1 changes, 1 nodes\n%x = parameter(");
    tutti_graph_destroy(graph);
}

/* The real world makes the folder, and folders in folders. */
TUTTI_TEST(world_makes_folders)
{
    const tutti_world *world = tutti__world();
    char root[] = "/tmp/tutti-test-XXXXXX", path[64];
    CHECK(mkdtemp(root) != NULL);
    snprintf(path, sizeof path, "%s/a/b", root);
    CHECK_OK(world->make_folder(world->self, path));
    CHECK_OK(world->make_folder(world->self, path)); /* it is there */
    snprintf(path, sizeof path, "%s/a/b/file", root);
    CHECK_OK(world->write_file(world->self, path, "x", 1));
    CHECK_STATUS(world->make_folder(world->self, path), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "make the folder");
    remove(path);
    for (int i = 0; i < 3; i++) {
        *strrchr(path, '/') = '\0';
        CHECK(remove(path) == 0);
    }
}
