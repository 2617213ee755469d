/* dot.c: a graph for Graphviz. Nodes of one device stand in one cluster; sub-graphs are clusters
 * too, tied to their node by a dotted line. Control edges are dashed; results have a double border.
 *
 *     tutti_graph_dot(g, &text); … dot -Tsvg graph.dot > graph.svg */
#include <string.h>

#include "graph/print.h"
#include "graph/serialize.h"

typedef struct drawing {
    tutti_text out;
    int graphs; /* numbered as they are met */
} drawing;

static void quoted(tutti_text *out, const char *text)
{
    for (; *text; text++)
        tutti__text_add(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
}

static bool is_result(const tutti_graph *graph, const tutti_node *node)
{
    for (size_t i = 0; i < graph->results.count; i++)
        if (graph->results.data[i].node == node)
            return true;
    return false;
}

static void draw_node(tutti_text *out, int number, const tutti_node *node)
{
    tutti_text attr = {0};
    tutti__text_add(out, "  g%d_n%u [label=\"%s\\n", number, node->id, node->op->name);
    quoted(out, node->name);
    for (int i = 0; i < node->attr_count; i++) {
        if (node->attrs[i].kind == TUTTI_ATTR_GRAPH ||
            tutti__attr_is_default(node->op, &node->attrs[i]))
            continue;
        tutti__print_attr(&attr, node->op, &node->attrs[i]);
        tutti__text_add(out, "\\n");
        quoted(out, attr.data ? attr.data : "");
        tutti__text_free(&attr);
    }
    tutti__text_add(out, "\"%s];\n", is_result(node->graph, node) ? ", peripheries=2" : "");
}

/* Every device in a cluster of its own, in the order in which devices first appear. */
static bool draw_nodes(tutti_text *out, int number, const tutti_graph *graph)
{
    tutti_map devices = {0};
    bool good = true;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        tutti_node *node = graph->nodes.data[i];
        if (!node->dead && !node->device[0])
            draw_node(out, number, node);
        else if (!node->dead)
            good = good && tutti__map_set(&devices, node->device, node) == TUTTI_OK;
    }
    for (size_t d = 0; d < devices.count; d++) {
        tutti__text_add(out, "  subgraph \"cluster_g%d_d%zu\" {\n  label=\"", number, d);
        quoted(out, devices.entries[d].key);
        tutti__text_add(out, "\";\n  style=rounded;\n");
        for (size_t i = 0; i < graph->nodes.count; i++) {
            const tutti_node *node = graph->nodes.data[i];
            if (!node->dead && node->device[0] && strcmp(node->device, devices.entries[d].key) == 0)
                draw_node(out, number, node);
        }
        tutti__text_add(out, "  }\n");
    }
    tutti__map_free(&devices);
    return good;
}

static void draw_edges(tutti_text *out, int number, const tutti_node *node)
{
    char text[TUTTI_TYPE_TEXT];
    for (int i = 0; i < node->input_count; i++) {
        tutti_edge edge = node->inputs[i];
        tutti__text_add(out, "  g%d_n%u -> g%d_n%u [label=\"%s", number, edge.node->id, number,
                        node->id, tutti_type_text(tutti__edge_type(edge), text));
        tutti__print_sharding(out, edge);
        tutti__text_add(out, "\"%s];\n", tutti__edge_type(edge)->handle ? ", color=gray" : "");
    }
    for (int i = 0; i < node->control_count; i++)
        tutti__text_add(out, "  g%d_n%u -> g%d_n%u [style=dashed];\n", number,
                        node->controls[i]->id, number, node->id);
}

static bool draw_graph(drawing *d, const tutti_graph *graph, int number, int depth);

static bool draw_subgraphs(drawing *d, const tutti_node *node, int number, int depth)
{
    bool good = true;
    for (int i = 0; good && i < node->attr_count; i++) {
        if (node->attrs[i].kind != TUTTI_ATTR_GRAPH || depth >= TUTTI_GRAPH_MAX_DEPTH)
            continue;
        const tutti_graph *body = node->attrs[i].value.graph;
        int inner = ++d->graphs;
        tutti__text_add(&d->out, "  subgraph \"cluster_g%d\" {\n  label=\"%s of ", inner,
                        node->attrs[i].name);
        quoted(&d->out, node->name);
        tutti__text_add(&d->out, "\";\n  style=filled;\n  fillcolor=gray95;\n");
        good = draw_graph(d, body, inner, depth + 1);
        tutti__text_add(&d->out, "  }\n");
        for (size_t n = 0; n < body->nodes.count; n++)
            if (!body->nodes.data[n]->dead) {
                tutti__text_add(
                    &d->out,
                    "  g%d_n%u -> g%d_n%u [style=dotted, arrowhead=none, lhead=\"cluster_g%d\"];\n",
                    number, node->id, inner, body->nodes.data[n]->id, inner);
                break;
            }
    }
    return good;
}

static bool draw_graph(drawing *d, const tutti_graph *graph, int number, int depth)
{
    bool good = draw_nodes(&d->out, number, graph);
    for (size_t i = 0; good && i < graph->nodes.count; i++) {
        if (graph->nodes.data[i]->dead)
            continue;
        draw_edges(&d->out, number, graph->nodes.data[i]);
        good = draw_subgraphs(d, graph->nodes.data[i], number, depth);
    }
    return good;
}

tutti_status tutti_graph_dot(const tutti_graph *graph, char **ret_text)
{
    drawing d = {0};
    if (!graph || !ret_text)
        return tutti_fail(TUTTI_INVALID, "tutti_graph_dot: the %s is NULL",
                          graph ? "place for the text" : "graph");
    tutti__text_add(
        &d.out, "digraph tutti {\n  compound=true;\n  node [shape=box, style=\"rounded,filled\", "
                "fillcolor=white, fontname=\"sans-serif\", fontsize=10];\n"
                "  edge [fontname=\"sans-serif\", fontsize=8];\n");
    d.out.failed |= !draw_graph(&d, graph, 0, 1);
    tutti__text_add(&d.out, "}\n");
    return tutti__print_finish(&d.out, ret_text);
}
