/* added.c: losses and metrics that layers and models add by themselves, beside what compile is
 * given: terms of the loss, and means that are shown under a name. */
#include <stdio.h>
#include <string.h>

#include "nn/model/model.h"
#include "ops/build.h"

/* ---- the operator "added": only in blueprints, never run ---- */

static tutti_status infer_added(tutti_infer *node)
{
    node->outputs[0] = node->inputs[0];
    return TUTTI_OK;
}

static const tutti_attr_spec added_attrs[] = {
    {"name", TUTTI_ATTR_STRING, ""}, {"loss", TUTTI_ATTR_INT, "0"}, {NULL, 0, NULL}};

static const tutti_op added_op = {
    .struct_size = sizeof(tutti_op),
    .name = "added",
    .version = 1,
    .doc = "added(x): x is a loss or a metric of the model whose blueprint it stands in",
    .category = "model",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_STATEFUL,
    .attrs = added_attrs,
    .infer = infer_added,
};
const tutti_op *const tutti__added_op = &added_op;

static void added_note(tutti_graph *graph, tutti_sym value, const char *name, bool loss)
{
    tutti_attr attrs[] = {TUTTI_STR("name", name), TUTTI_INT("loss", loss)};
    tutti__build(graph, &added_op, loss ? "added_loss" : "added_metric", 1, &value, 2, attrs);
}

void tutti__added_copy(const tutti_node *node, tutti_sym value)
{
    const char *name = tutti__str(node, "name");
    tutti__add(value, name, tutti__int(node, "loss") != 0);
}

/* ---- adding ---- */

static const char *const verbs[] = {"tutti_add_metric", "tutti_add_loss"};

void tutti__add(tutti_sym value, const char *name, bool loss)
{
    tutti_graph *graph = tutti_sym_graph(value);
    if (!graph || tutti_graph_check(graph) != TUTTI_OK)
        return;
    tutti_building *building = graph->building;
    char text[TUTTI_TYPE_TEXT];
    name = name ? name : "";
    if (!building)
        tutti__poison(graph, TUTTI_INVALID,
                      "%s '%s': it is called in no layer and no model; a loop by hand adds to its "
                      "loss itself, and shows numbers by tutti_progress_mean",
                      verbs[loss], name);
    else if (!loss && !name[0])
        tutti__poison(graph, TUTTI_INVALID, "tutti_add_metric: a metric needs a name");
    else if (!tutti_dtype_is_float(tutti_sym_type(value).dtype)) {
        tutti_type type = tutti_sym_type(value);
        tutti__poison(graph, TUTTI_INVALID, "%s '%s': the value is %s, needs floats", verbs[loss],
                      name, tutti_type_text(&type, text));
    } else if (building->records) {
        added_note(graph, value, name, loss);
    } else {
        const char *kept = tutti__arena_string(&graph->arena, name);
        if (!kept || !TUTTI_VEC_PUSH(&building->added, ((tutti_added){value, kept, loss})))
            tutti__poison(graph, TUTTI_NO_MEMORY, "no memory to build the model");
    }
}

void(tutti_add_loss)(tutti_sym value, const char *name)
{
    tutti__add(value, name, true);
}

void(tutti_add_metric)(tutti_sym value, const char *name)
{
    tutti__add(value, name, false);
}

/* ---- reading ---- */

tutti_sym tutti__added_value(const tutti_added *added, bool sums)
{
    tutti_sym value = added->value;
    if (tutti_sym_type(value).dtype != TUTTI_F32)
        value = tutti_cast(value, TUTTI_F32);
    if (tutti_sym_type(value).rank == 0)
        return value;
    return sums ? tutti_sum(value) : tutti_mean(value);
}

int tutti__added_before(const tutti_building *building, size_t index)
{
    int count = 0;
    for (size_t i = 0; i < index; i++)
        count += strcmp(building->added.data[i].name, building->added.data[index].name) == 0;
    return count;
}

const char *tutti__added_name(const char *name, int before, char ret[300])
{
    snprintf(ret, 300, before > 0 ? "%s_%d" : "%s", name, before);
    return ret;
}

/* "divergence, balance, balance_1" */
static void list_names(const tutti_building *building, char *ret, size_t size)
{
    char name[300];
    size_t used = 0;
    ret[0] = 0;
    for (size_t i = 0; i < building->added.count && used < size; i++)
        if (building->added.data[i].name[0])
            used += (size_t)snprintf(ret + used, size - used, "%s%s", used ? ", " : "",
                                     tutti__added_name(building->added.data[i].name,
                                                       tutti__added_before(building, i), name));
}

tutti_sym(tutti_added_value)(tutti_model *model, const char *name, tutti_sym like)
{
    tutti_graph *graph = tutti_sym_graph(like);
    char text[400], each[300];
    if (!model || !graph || !name)
        return TUTTI_NO_SYM;
    const tutti_building *noted = tutti__last_applied(model, graph);
    if (!noted)
        return tutti__poison(graph, TUTTI_INVALID,
                             "tutti_added_value: model '%s' was not applied in this step, or "
                             "graph; call tutti_apply first",
                             model->name);
    for (size_t i = 0; i < noted->added.count; i++) {
        const tutti_added *added = &noted->added.data[i];
        if (added->name[0] &&
            strcmp(name, tutti__added_name(added->name, tutti__added_before(noted, i), each)) == 0)
            return tutti__added_value(added, false);
    }
    list_names(noted, text, sizeof text);
    return tutti__poison(graph, TUTTI_NOT_FOUND,
                         "tutti_added_value: no layer of model '%s' adds a loss or metric '%s'; "
                         "there are: %s",
                         model->name, name, text[0] ? text : "none");
}
