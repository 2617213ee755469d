/* body.c: see body.h. */
#include "device/cuda/operators/body.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "tables/cuda_texts.h"

bool tutti__cuda_has_text(const tutti_op *op)
{
    char name[80];
    snprintf(name, sizeof name, " op_%s(", op->name);
    if (strstr(tutti__cuda_text_elementwise_cuh.text, name))
        return true;
    snprintf(name, sizeof name, "(op_%s,", op->name); /* by a macro */
    return strstr(tutti__cuda_text_elementwise_cuh.text, name) != NULL;
}

const char *tutti__cuda_computed(tutti_dtype dtype)
{
    return dtype == TUTTI_F64 ? "double" : tutti_dtype_is_float(dtype) ? "float" : "i64";
}

/* Exactly, infinities and NaN too. */
void tutti__cuda_write_number(tutti_text *text, double value)
{
    if (isfinite(value)) {
        tutti__text_add(text, "%a", value);
        return;
    }
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    tutti__text_add(text, "__longlong_as_double(0x%llxull)", (unsigned long long)bits);
}

/* Operators that the chip's own functions compute well enough for bf16 wherever the result lies:
 * not logarithms, powers and angles. */
static bool is_coarse(const tutti_op *op)
{
    static const char *const names[] = {
        "abs",  "add",    "cast",    "clip",  "div",  "exp",    "gelu",    "maximum", "mean",
        "mul",  "neg",    "minimum", "relu",  "silu", "square", "sigmoid", "sub",     "sum",
        "tanh", "square", "max",     "where", "min",  "sqrt",   "rsqrt"};
    for (size_t i = 0; i < TUTTI_COUNT(names); i++)
        if (strcmp(names[i], op->name) == 0)
            return true;
    return false;
}

const char *tutti__cuda_body_options(const tutti_cuda_body *body)
{
    bool narrow = true;
    for (int i = 0; i < body->count; i++) {
        const tutti_cuda_value *v = &body->values[i];
        narrow &= !v->op || (v->type.dtype == TUTTI_BF16 && is_coarse(v->op));
    }
    if (!narrow)
        return "--fmad=false";
    return body->rounds ? "--fmad=false --use_fast_math -DCOARSE" : "--use_fast_math -DCOARSE";
}

void tutti__cuda_body_write(const tutti_cuda_body *body, int i, tutti_text *text)
{
    const tutti_cuda_value *v = &body->values[i];
    tutti__text_add(text, "const %s v%d = ", tutti__cuda_computed(v->type.dtype), i);
    if (!v->op) {
        if (tutti_dtype_is_float(v->type.dtype)) {
            tutti__text_add(text, "(%s)", tutti__cuda_computed(v->type.dtype));
            tutti__cuda_write_number(text, v->constant);
        } else {
            tutti__text_add(text, "(i64)0x%llxull", (unsigned long long)v->whole);
        }
        tutti__text_add(text, ";\n");
        return;
    }
    bool rounds = body->rounds || strcmp(v->op->name, "cast") == 0 ||
                  (v->type.dtype != TUTTI_BF16 && v->type.dtype != TUTTI_F16);
    if (rounds)
        tutti__text_add(text, "settle<%s>", tutti__cuda_dtype(v->type.dtype));
    tutti__text_add(text, "(op_%s(", v->op->name);
    for (int k = 0; k < v->input_count; k++)
        tutti__text_add(text, "%sv%d", k ? ", " : "", v->inputs[k]);
    for (int k = 0; k < v->attr_count; k++) {
        tutti__text_add(text, ", ");
        if (v->attrs[k].kind == TUTTI_ATTR_FLOAT)
            tutti__cuda_write_number(text, v->attrs[k].value.f);
        else
            tutti__text_add(text, "%lldll", (long long)v->attrs[k].value.i);
    }
    if (v->op->flags & TUTTI_OP_FALLIBLE)
        tutti__text_add(text, ", bad");
    tutti__text_add(text, "));\n");
}

static tutti_cuda_body *body_allocate(size_t values)
{
    tutti_cuda_body *body = calloc(1, sizeof(tutti_cuda_body) + values * sizeof(tutti_cuda_value));
    if (body)
        body->values = (tutti_cuda_value *)(body + 1);
    return body;
}

static bool add_inputs(tutti_cuda_body *body, const tutti_infer *node)
{
    if (node->input_count > TUTTI_CUDA_SOURCES || node->output_count > TUTTI_CUDA_RESULTS ||
        node->output_count < 1)
        return false;
    for (int i = 0; i < node->input_count; i++) {
        if (!tutti__cuda_dtype(node->inputs[i].dtype) || node->inputs[i].handle)
            return false;
        body->values[body->count++] =
            (tutti_cuda_value){.source = i, .total = -1, .type = node->inputs[i]};
    }
    body->source_count = node->input_count;
    body->output_count = node->output_count;
    return true;
}

/* Numbers and choices only, which become the function's last arguments. */
static bool has_plain_attributes(const tutti_attr *attrs, int count)
{
    for (int i = 0; i < count; i++)
        if (attrs[i].kind != TUTTI_ATTR_INT && attrs[i].kind != TUTTI_ATTR_FLOAT)
            return false;
    return true;
}

static bool read_single(const tutti_infer *node, tutti_cuda_body *body)
{
    if (!tutti__cuda_has_text(node->op) || node->input_count > TUTTI_CUDA_OPERANDS ||
        node->output_count != 1 || !has_plain_attributes(node->attrs, node->attr_count))
        return false;
    tutti_cuda_value last = {.op = node->op,
                             .attrs = node->attrs,
                             .attr_count = node->attr_count,
                             .input_count = node->input_count,
                             .source = -1,
                             .total = -1,
                             .type = node->outputs[0]};
    for (int i = 0; i < node->input_count; i++)
        last.inputs[i] = i;
    body->results[0] = body->count;
    body->values[body->count++] = last;
    body->full = node->outputs[0];
    return true;
}

/* A constant of one number; others would need memory. */
static bool read_constant(const tutti_node *node, tutti_cuda_value *value)
{
    const tutti_attr *attr = tutti_attr_find(node->attrs, node->attr_count, "value");
    const tutti_type *type = &node->types[0];
    if (!attr || !tutti__cuda_dtype(type->dtype) || tutti__cuda_type_count(type) != 1)
        return false;
    *value = (tutti_cuda_value){.source = -1, .total = -1, .type = *type};
    value->constant = tutti_tensor_get(attr->value.tensor, 0);
    value->whole = tutti_tensor_get_int(attr->value.tensor, 0);
    return true;
}

static bool is_reduction(const tutti_node *node)
{
    static const char *const names[] = {"sum", "mean", "max", "min"};
    for (size_t i = 0; i < TUTTI_COUNT(names); i++)
        if (strcmp(node->op->name, names[i]) == 0)
            return true;
    return false;
}

/* Which axes of its operand a reduction works along. */
static unsigned axes_of(const tutti_node *node, int rank)
{
    const int64_t *axes;
    int count = tutti_attr_ints(node->attrs, node->attr_count, "axes", &axes);
    unsigned along = count == 0 ? (1u << rank) - 1 : 0;
    for (int i = 0; i < count; i++)
        along |= 1u << (axes[i] < 0 ? axes[i] + rank : axes[i]);
    return along;
}

/* Leading axes: over rows; trailing: along them. The rows of all agree, or the body is refused. */
static bool read_reduction(tutti_cuda_body *body, const tutti_node *node, tutti_cuda_value *value)
{
    const tutti_type *of = &node->inputs[0].node->types[node->inputs[0].index];
    unsigned along = axes_of(node, of->rank);
    int64_t rows = 1, columns = 1;
    int kept = 0, axis = of->rank;
    if (!tutti_dtype_is_float(of->dtype))
        return false;
    for (; axis > 0 && along >> (axis - 1) & 1; axis--)
        columns *= of->dims[axis - 1];
    bool rows_reduced = axis < of->rank && axis > 0;
    for (int i = 0; i < axis; i++) {
        kept += !(along >> i & 1);
        rows *= of->dims[i];
    }
    value->reduces = true;
    if (axis == 0 || !rows_reduced) { /* over everything, or over leading axes */
        int lead = 0;
        while (lead < of->rank && along >> lead & 1)
            lead++;
        if (along >> lead != 0 && lead < of->rank)
            return false;
        value->reach = TUTTI_CUDA_TOTAL;
        value->whole_total = axis == 0;
        value->total = body->total_count++;
        if (axis == 0)
            return true;
        rows = columns = 1;
        for (int i = 0; i < of->rank; i++)
            *(i < lead ? &rows : &columns) *= of->dims[i];
    } else {
        if (kept != axis)
            return false;
        value->reach = TUTTI_CUDA_ROW;
        body->reduction_count++;
    }
    if (body->columns > 0 && (body->rows != rows || body->columns != columns))
        return false;
    body->rows = rows;
    body->columns = columns;
    return true;
}

static bool read_node(tutti_cuda_body *body, const tutti_node *node, const int *value_of)
{
    tutti_cuda_value value = {.op = node->op,
                              .attrs = node->attrs,
                              .attr_count = node->attr_count,
                              .input_count = node->input_count,
                              .source = -1,
                              .total = -1,
                              .type = node->types[0]};
    if (node->input_count > TUTTI_CUDA_OPERANDS || node->output_count != 1 ||
        !tutti__cuda_dtype(value.type.dtype))
        return false;
    for (int k = 0; k < node->input_count; k++) {
        const tutti_cuda_value *operand =
            &body->values[value.inputs[k] = value_of[node->inputs[k].node->id]];
        if (operand->reach == TUTTI_CUDA_TOTAL)
            return false;
        int phase = operand->phase + (operand->reduces && operand->reach == TUTTI_CUDA_ROW);
        value.phase = phase > value.phase ? phase : value.phase;
    }
    if (is_reduction(node)) {
        if (!read_reduction(body, node, &value))
            return false;
        body->full = node->inputs[0].node->types[node->inputs[0].index];
    } else {
        if (!tutti__cuda_has_text(node->op) || !has_plain_attributes(node->attrs, node->attr_count))
            return false;
    }
    body->phase_count = value.phase > body->phase_count ? value.phase : body->phase_count;
    body->values[body->count++] = value;
    return true;
}

static bool read_graph(const tutti_infer *node, const tutti_graph *graph, tutti_cuda_body *body,
                       int *value_of)
{
    if ((int)graph->results.count != node->output_count)
        return false;
    body->full = node->outputs[0];
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const tutti_node *part = graph->nodes.data[i];
        if (part->dead)
            continue;
        if (strcmp(part->op->name, "parameter") == 0) {
            int64_t index = tutti_attr_int(part->attrs, part->attr_count, "index");
            if (index < 0 || index >= node->input_count)
                return false;
            value_of[part->id] = (int)index;
            continue;
        }
        value_of[part->id] = body->count;
        if (strcmp(part->op->name, "constant") == 0) {
            if (!read_constant(part, &body->values[body->count]))
                return false;
            body->count++;
        } else if (!read_node(body, part, value_of)) {
            return false;
        }
    }
    for (int i = 0; i < node->output_count; i++)
        body->results[i] = value_of[graph->results.data[i].node->id];
    return true;
}

/* A value that takes nothing but what there is once for each row is such a value itself. */
static void find_reach(tutti_cuda_body *body)
{
    for (int i = 0; i < body->count; i++) {
        tutti_cuda_value *v = &body->values[i];
        if (v->reduces)
            continue;
        bool full = v->input_count == 0, row = false;
        if (!v->op) {
            v->reach =
                v->source < 0 ? TUTTI_CUDA_ROW : TUTTI_CUDA_FULL; /* a number is there for all */
            continue;
        }
        for (int k = 0; k < v->input_count; k++) {
            const tutti_cuda_value *x = &body->values[v->inputs[k]];
            full |= x->reach == TUTTI_CUDA_FULL && !(x->op == NULL && x->source < 0);
            row |= x->reach == TUTTI_CUDA_ROW && x->op != NULL;
        }
        v->reach = row && !full ? TUTTI_CUDA_ROW : TUTTI_CUDA_FULL;
    }
}

static const tutti_graph *graph_of(const tutti_infer *node)
{
    for (int i = 0; i < node->attr_count; i++)
        if (node->attrs[i].kind == TUTTI_ATTR_GRAPH)
            return node->attrs[i].value.graph;
    return NULL;
}

tutti_cuda_body *tutti__cuda_body_read(const tutti_infer *node)
{
    const tutti_graph *graph = graph_of(node);
    size_t most = (size_t)node->input_count + (graph ? graph->nodes.count : 1);
    tutti_cuda_body *body = body_allocate(most);
    int *value_of = calloc(graph ? graph->nodes.count + 1 : 1, sizeof *value_of);
    bool read = body && value_of && add_inputs(body, node) &&
                (graph ? read_graph(node, graph, body, value_of) : read_single(node, body));
    free(value_of);
    if (!read) {
        free(body);
        return NULL;
    }
    if (body->columns == 0) {
        body->rows = 1;
        body->columns = tutti__cuda_type_count(&body->full);
    }
    find_reach(body);
    return body;
}
