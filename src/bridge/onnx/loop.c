/* loop.c: Loop and Scan. Few rounds that are known are built one after the other; others become
 * while (loop_while.c). */
#include "bridge/onnx/loop.h"

#include <string.h>

/* Element `at` of scanned input i. */
tutti_sym tutti__onnx_scanned(const tutti_onnx_rounds *l, int i, tutti_sym x, tutti_sym at)
{
    int axis = (int)l->axes[i];
    if (l->back[i])
        at = tutti_sub(tutti_add(tutti_size(x, axis), -1), at);
    return tutti_gather(x, at, axis);
}

static tutti_onnx_known *kept_sym(tutti_onnx_rounds *l, tutti_sym sym)
{
    tutti_onnx_known *known = tutti__arena_take(&l->m->root->arena, sizeof *known);
    if (!known) {
        tutti__onnx_read_fail(l->m, TUTTI_NO_MEMORY, "no memory for the model");
        return l->m->root->missing;
    }
    *known = (tutti_onnx_known){.name = "", .plain = sym};
    return known;
}

static tutti_onnx_known *kept_number(tutti_onnx_rounds *l, tutti_dtype dtype, int64_t value)
{
    tutti_tensor *tensor;
    tutti_onnx_known *known = kept_sym(l, TUTTI_NO_SYM);
    if (tutti_tensor_create(dtype, 0, NULL, &tensor) != TUTTI_OK)
        return known;
    tutti_tensor_set_int(tensor, 0, value);
    if (TUTTI_VEC_PUSH(&l->m->root->made, tensor))
        known->value = tensor;
    else
        tutti_tensor_release(tensor);
    return known;
}

static bool is_true(const tutti_tensor *value)
{
    return tutti_tensor_count(value) > 0 && tutti_tensor_get_int(value, 0) != 0;
}

/* Whether the body's condition stays true: it is its own input, or a constant. */
static bool goes_on(const tutti_onnx_rounds *l)
{
    const char *name = l->graph->outputs.items[0].name;
    const char *input = l->graph->inputs.items[1].name;
    for (size_t i = 0; i < l->graph->nodes.count; i++) {
        const tutti_onnx_node *node = &l->graph->nodes.items[i];
        bool makes = node->outputs.count > 0 && strcmp(node->outputs.items[0], name) == 0;
        if (makes && strcmp(node->type, "Identity") == 0)
            return node->inputs.count > 0 && strcmp(node->inputs.items[0], input) == 0;
        if (makes && strcmp(node->type, "Constant") == 0) {
            const tutti_onnx_attr *attr = tutti__onnx_attr(node, "value", ONNX_TENSOR);
            return attr && attr->tensor && is_true(attr->tensor);
        }
    }
    for (size_t i = 0; i < l->graph->initializers.count; i++)
        if (strcmp(l->graph->initializers.items[i].name, name) == 0)
            return is_true(l->graph->initializers.items[i].value);
    return strcmp(name, input) == 0;
}

/* Few rounds: one after the other. */
static void unroll(tutti_onnx_rounds *l, int64_t rounds)
{
    tutti_onnx_import *m = l->m;
    tutti_onnx_known *in[2 * ONNX_STATES + 2], *out[2 * ONNX_STATES + 2];
    tutti_sym given[ONNX_STATES][ONNX_UNROLL];
    int head = l->counts ? 2 : 0, tail = l->counts ? 1 : 0, all = head + l->states + l->scans;
    for (int i = 0; i < l->states; i++)
        in[head + i] = tutti__onnx_input(m, l->first_state + i);
    for (int64_t r = 0; r < rounds; r++) {
        if (l->counts) {
            in[0] = kept_number(l, TUTTI_I64, r);
            in[1] = kept_number(l, TUTTI_BOOL, 1);
        }
        for (int i = 0; i < l->scans; i++) {
            tutti_sym x = tutti__onnx_sym(m, l->first_state + l->states + i);
            in[head + l->states + i] = kept_sym(
                l, tutti__onnx_scanned(l, i, x, tutti_scalar(m->graph, TUTTI_I64, (double)r)));
        }
        if (m->status != TUTTI_OK || !tutti__onnx_inline(m, l->graph, (size_t)all, in, out))
            return;
        for (int i = 0; i < l->states; i++)
            in[head + i] = out[tail + i];
        for (int i = 0; i < l->gives; i++)
            given[i][l->out_back[i] ? rounds - 1 - r : r] =
                tutti__onnx_symbol(m, out[tail + l->states + i]);
    }
    for (int i = 0; i < l->states; i++)
        tutti__onnx_made_known(m, i, in[head + i]);
    for (int i = 0; m->status == TUTTI_OK && i < l->gives; i++)
        tutti__onnx_made(m, l->states + i,
                         tutti_stack((int)rounds, given[i], .axis = (int)l->out_axes[i]));
}

static bool loop_fits(tutti_onnx_rounds *l)
{
    if (l->states >= 0 && l->gives >= 0 && l->states + l->gives <= ONNX_STATES &&
        l->scans <= ONNX_STATES &&
        tutti__onnx_captures(l->m, l->graph, ONNX_CAPTURES, &l->captures, l->names))
        return true;
    tutti__onnx_read_fail(l->m, TUTTI_UNSUPPORTED,
                          "has more than %d states or %d values from "
                          "around it",
                          ONNX_STATES, ONNX_CAPTURES);
    return false;
}

static void read_loop(tutti_onnx_import *m)
{
    tutti_onnx_rounds l = {
        .m = m, .graph = tutti__onnx_graph_of(m, "body"), .counts = true, .first_state = 2};
    if (!l.graph)
        return;
    l.states = (int)m->node->inputs.count - 2;
    l.gives = (int)l.graph->outputs.count - 1 - l.states;
    if (!loop_fits(&l))
        return;
    if (l.graph->inputs.count != (size_t)l.states + 2) {
        tutti__onnx_read_fail(m, TUTTI_INVALID,
                              "has %d states, but its body %zu inputs: a number, a condition and "
                              "the states",
                              l.states, l.graph->inputs.count);
        return;
    }
    const tutti_tensor *limit = tutti__onnx_has(m, 0) ? tutti__onnx_try_constant(m, 0) : NULL;
    const tutti_tensor *start = tutti__onnx_has(m, 1) ? tutti__onnx_try_constant(m, 1) : NULL;
    limit = limit && tutti_tensor_count(limit) > 0 ? limit : NULL;
    bool begins = !tutti__onnx_has(m, 1) || (start && is_true(start));
    bool always = l.gives == 0 || !limit || tutti_tensor_get_int(limit, 0) > 0;
    int64_t rounds = limit ? tutti_tensor_get_int(limit, 0) : -1;
    if (limit && begins && always && goes_on(&l) && rounds <= ONNX_UNROLL && rounds >= 0) {
        unroll(&l, rounds);
        return;
    }
    tutti_sym most = tutti__onnx_has(m, 0) ? tutti_reshape(tutti__onnx_sym(m, 0))
                                           : tutti_squeeze(tutti_ints(m->graph, INT64_MAX), 0);
    tutti_sym yes = tutti__onnx_has(m, 1) ? tutti_reshape(tutti__onnx_sym(m, 1))
                                          : tutti_scalar(m->graph, TUTTI_BOOL, 1);
    if (m->status == TUTTI_OK)
        tutti__onnx_go_round(&l, most, yes);
}

/* ---- Scan ---- */

static void read_axes(tutti_onnx_import *m, const char *axes, const char *ways, int count,
                      int64_t *ret_axes, bool *ret_back)
{
    const int64_t *list;
    int given = tutti__onnx_attr_ints(m, axes, &list);
    for (int i = 0; i < count; i++)
        ret_axes[i] = i < given ? list[i] : 0;
    given = tutti__onnx_attr_ints(m, ways, &list);
    for (int i = 0; i < count; i++)
        ret_back[i] = i < given && list[i] != 0;
}

static void read_scan(tutti_onnx_import *m)
{
    tutti_onnx_rounds l = {.m = m, .graph = tutti__onnx_graph_of(m, "body")};
    if (!l.graph)
        return;
    l.scans = (int)tutti__onnx_attr_int(m, "num_scan_inputs", 0);
    l.first_state = m->opset < 9 ? 1 : 0;
    l.states = (int)m->node->inputs.count - l.first_state - l.scans;
    l.gives = (int)l.graph->outputs.count - l.states;
    if (m->opset < 9) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "Scan of opset 8 is not supported");
        return;
    }
    if (l.scans < 1 || l.states < 0 || l.gives < 0 || !loop_fits(&l))
        return;
    read_axes(m, "scan_input_axes", "scan_input_directions", l.scans, l.axes, l.back);
    read_axes(m, "scan_output_axes", "scan_output_directions", l.gives, l.out_axes, l.out_back);
    tutti_sym x = tutti__onnx_sym(m, l.first_state + l.states);
    if (!x.node)
        return;
    tutti_type type = tutti_sym_type(x);
    for (int i = 0; i < l.scans; i++)
        l.axes[i] += l.axes[i] < 0 ? type.rank : 0;
    int64_t rounds = l.axes[0] < type.rank ? type.dims[l.axes[0]] : -1;
    if (rounds > 0 && rounds <= ONNX_UNROLL)
        unroll(&l, rounds);
    else
        tutti__onnx_go_round(&l, tutti_size(x, l.axes[0]), tutti_scalar(m->graph, TUTTI_BOOL, 1));
}

const tutti_onnx_op tutti_onnx_loop = {
    .type = "Loop",
    .read = read_loop,
};

const tutti_onnx_op tutti_onnx_scan = {
    .type = "Scan",
    .read = read_scan,
    .note = "from opset 9 on",
};
