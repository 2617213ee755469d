/* summary_parts.c: what an imported model holds: the file's nodes with their weights. */
#include <inttypes.h>
#include <stdio.h>

#include "nn/model/model.h"
#include "ops/build.h"

static void add_shape(const tutti_type *type, int from, tutti_text *text)
{
    tutti_text shape = {0};
    tutti__text_add(&shape, "[");
    for (int i = from; i < type->rank; i++) {
        const char *comma = i > from ? ", " : "";
        if (type->dims[i] < 0)
            tutti__text_add(&shape, "%s?", comma);
        else
            tutti__text_add(&shape, "%s%" PRId64, comma, type->dims[i]);
    }
    tutti__text_add(&shape, "]");
    tutti__text_add(text, " %-22s", shape.data ? shape.data : "");
    text->failed = text->failed || shape.failed;
    tutti__text_free(&shape);
}

/* The part's first value as the file has it: "turned" is channels last in the blueprint. */
static const tutti_named_value *value_of(const tutti_model *model, size_t part, size_t *from)
{
    while (*from < model->values.count && model->values.data[*from].part < part)
        (*from)++;
    return *from < model->values.count && model->values.data[*from].part == part
               ? &model->values.data[*from]
               : NULL;
}

static tutti_type file_type(const tutti_named_value *value)
{
    tutti_type type = tutti_sym_type(value->sym);
    if (!value->turned || type.rank < 3)
        return type;
    tutti_type turned = type;
    turned.dims[1] = type.dims[type.rank - 1];
    for (int i = 2; i < type.rank; i++)
        turned.dims[i] = type.dims[i - 1];
    return turned;
}

/* A weight stands where it is used first. */
static void add_weight(const tutti_model *model, const tutti_node *node, tutti_text *text)
{
    const tutti_node *weight = tutti_graph_find(model->graph, node->name);
    bool trained = weight && tutti__int(weight, "trainable");
    tutti__text_add(text, "  %-32s", node->name);
    add_shape(&node->types[0], 0, text);
    tutti__text_add(text, " %12" PRId64 "%s\n", tutti_type_count(&node->types[0]),
                    trained ? "" : "  frozen");
}

void tutti__summary_parts(const tutti_model *model, tutti_text *text)
{
    size_t from = 0, node = 0;
    if (model->parts.count == 0)
        return;
    tutti__text_add(text, "\n%-34s %-22s %12s\n", "node", "output", "parameters");
    for (size_t i = 0; i < model->parts.count; i++) {
        const tutti_named_value *value = value_of(model, i, &from);
        char name[128];
        snprintf(name, sizeof name, "%s (%s)", model->parts.data[i]->name,
                 model->parts.data[i]->kind->name);
        tutti__text_add(text, "%-34s", name);
        if (value) {
            tutti_type type = file_type(value);
            add_shape(&type, 1, text);
        }
        tutti__text_add(text, "\n");
        for (; node < model->part_of.count && model->part_of.data[node] <= i + 1; node++)
            if (model->part_of.data[node] > 0 &&
                tutti__is(model->blueprint->nodes.data[node], "variable"))
                add_weight(model, model->blueprint->nodes.data[node], text);
    }
}
