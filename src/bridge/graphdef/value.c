/* value.c: what nodes take: symbols, constants, and numbers of shapes as far as they are
 * known. */
#include "bridge/graphdef/graphdef.h"
#include "ops/reference.h"

#include <stdio.h>
#include <string.h>

void tutti__graphdef_fail(tutti_graphdef_import *m, tutti_status status, const char *format, ...)
{
    char text[700];
    va_list list;
    if (m->status != TUTTI_OK)
        return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    /* What the graph had no memory for explains everything that is missed behind it. */
    if (m->graph && tutti_graph_check(m->graph) == TUTTI_NO_MEMORY) {
        status = TUTTI_NO_MEMORY;
        snprintf(text, sizeof text, "%s", tutti_error_message());
    }
    m->status = tutti_fail(status, "%s: %s '%s': %s", m->def->file, m->node ? m->node->op : "graph",
                           m->node ? m->node->name : "", text);
    tutti__error_capture(m->status, &m->error);
}

int tutti__graphdef_inputs(const tutti_graphdef_node *node)
{
    int count = 0;
    while ((size_t)count < node->inputs.count && node->inputs.items[count][0] != '^')
        count++;
    return count;
}

tutti_sym tutti__graphdef_in(tutti_graphdef_import *m, int i)
{
    const tutti_graphdef_value *value = tutti__graphdef_input(m, i);
    if (value && !value->list && value->sym.node)
        return value->sym;
    tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "input %d is no tensor", i);
    return TUTTI_NO_SYM;
}

/* ---- constants ---- */

/* Whether a node follows from small constants alone. */
static bool follows(const tutti_node *node, int depth, int *visited)
{
    uint32_t never = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_RANDOM | TUTTI_OP_COLLECTIVE |
                     TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_BLOCKING;
    int64_t count = tutti_type_count(&node->types[0]);
    if ((node->op->flags & never) || tutti__is(node, "placeholder") ||
        tutti__is(node, "parameter") || depth > 32 || ++*visited > 256 || count < 0 || count > 1024)
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (!follows(node->inputs[i].node, depth + 1, visited))
            return false;
    return true;
}

static tutti_tensor *value_keep(tutti_graphdef_import *m, tutti_tensor *value)
{
    if (TUTTI_VEC_PUSH(&m->def->tensors, value))
        return value;
    tutti_tensor_release(value);
    return NULL;
}

/* All the numbers of a shape. */
static tutti_tensor *from_numbers(tutti_graphdef_import *m, tutti_sym sym)
{
    tutti_axes numbers;
    tutti_tensor *value;
    tutti_type type = tutti_sym_type(sym);
    if (!tutti__graphdef_numbers(m, sym, &numbers))
        return NULL;
    for (int i = 0; i < numbers.count; i++)
        if (numbers.values[i] == GRAPHDEF_UNKNOWN)
            return NULL;
    int64_t count = numbers.count;
    if (tutti_tensor_create(type.dtype, type.rank, &count, &value) != TUTTI_OK)
        return NULL;
    for (int i = 0; i < numbers.count; i++)
        tutti_tensor_set_int(value, i, numbers.values[i]);
    return value_keep(m, value);
}

tutti_tensor *tutti__graphdef_known(tutti_graphdef_import *m, tutti_sym sym)
{
    tutti_tensor *value = NULL;
    int visited = 0;
    if (!sym.node || tutti_graph_check(m->graph) != TUTTI_OK)
        return NULL;
    if (tutti__is(sym.node, "constant"))
        return tutti_attr_find(sym.node->attrs, sym.node->attr_count, "value")->value.tensor;
    value = from_numbers(m, sym);
    if (value || !follows(sym.node, 0, &visited))
        return value;
    tutti_edge edge = tutti__edge(sym);
    if (tutti__reference_run(m->graph, 0, NULL, 1, &edge, &value) != TUTTI_OK)
        return NULL;
    return value_keep(m, value);
}

tutti_tensor *tutti__graphdef_try_value(tutti_graphdef_import *m, int i)
{
    const tutti_graphdef_value *value = tutti__graphdef_input(m, i);
    return value && !value->list ? tutti__graphdef_known(m, value->sym) : NULL;
}

tutti_tensor *tutti__graphdef_value(tutti_graphdef_import *m, int i)
{
    tutti_tensor *value = tutti__graphdef_try_value(m, i);
    if (!value)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "input %d must be a constant", i);
    return value;
}

bool tutti__graphdef_ints(tutti_graphdef_import *m, int i, tutti_axes *ret)
{
    const tutti_tensor *value = tutti__graphdef_value(m, i);
    *ret = (tutti_axes){0};
    if (!value)
        return false;
    if (tutti_tensor_count(value) > TUTTI_MAX_RANK) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "input %d has more than %d numbers", i,
                             TUTTI_MAX_RANK);
        return false;
    }
    for (int64_t k = 0; k < tutti_tensor_count(value); k++)
        ret->values[ret->count++] = tutti_tensor_get_int(value, k);
    return true;
}
