/* graph.c: a graph as tutti_graph_serialize wrote it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "cli/viewer.h"
#include "graph/serialize.h"

static int recognise(const tutti_glance *glance)
{
    return glance->head_size > 8 && memcmp(glance->head, TUTTI_GRAPH_MAGIC, 8) == 0 ? 3 : 0;
}

static tutti_status graph_show(const tutti_glance *glance, bool json)
{
    const tutti_world *world = tutti__world();
    void *data;
    size_t size;
    tutti_graph *graph;
    char *text;
    TUTTI_TRY(world->read_file(world->self, glance->path, (size_t)1 << 30, &data, &size));
    tutti_status status = tutti_graph_deserialize(data, size, &graph);
    free(data);
    TUTTI_TRY(status);
    if (json) {
        printf("{\"nodes\":%zu}\n", tutti_graph_node_count(graph));
        tutti_graph_destroy(graph);
        return TUTTI_OK;
    }
    status = tutti_graph_print(graph, &text);
    if (status == TUTTI_OK) {
        printf("  %zu nodes\n", tutti_graph_node_count(graph));
        tutti__print_text(text);
        free(text);
    }
    tutti_graph_destroy(graph);
    return status;
}

const tutti_viewer tutti_viewer_graph = {
    .kind = "graph",
    .recognise = recognise,
    .show = graph_show,
};
