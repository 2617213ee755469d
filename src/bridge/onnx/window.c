/* window.c: see window.h. */
#include "bridge/onnx/window.h"

#include <string.h>

#include "ops/network/window.h"

void tutti__onnx_set_window(tutti_onnx_export *x, const int64_t size[2])
{
    const tutti_node *node = x->node;
    const int64_t *strides, *in = tutti__onnx_type_in(x, 0)->dims + 1;
    NODE_INTS(x, "strides", &strides);
    const int64_t *step = strides[0] == 0 ? size : strides; /* pooling: by the window */
    tutti__onnx_set_ints(x, "strides", 2, step);
    bool same = strcmp(NODE_STR(x, "padding"), "same") == 0;
    if (same && (in[0] < 0 || in[1] < 0 || size[0] < 0 || size[1] < 0)) {
        tutti__onnx_set_string(x, "auto_pad", "SAME_UPPER");
        return;
    }
    const int64_t *dilations = (const int64_t[]){1, 1}, *given;
    if (tutti_attr_find(node->attrs, node->attr_count, "dilations"))
        NODE_INTS(x, "dilations", &dilations);
    NODE_INTS(x, "pads", &given);
    int64_t pads[4] = {0};
    bool explicit_pads = strcmp(NODE_STR(x, "padding"), "explicit") == 0;
    for (int i = 0; i < 2; i++) {
        int64_t reach = (size[i] - 1) * dilations[i] + 1;
        int64_t out = (in[i] + step[i] - 1) / step[i], all = (out - 1) * step[i] + reach - in[i];
        all = all > 0 ? all : 0;
        pads[i] = explicit_pads ? given[2 * i] : same ? all / 2 : 0;
        pads[i + 2] = explicit_pads ? given[2 * i + 1] : same ? all - all / 2 : 0;
    }
    tutti__onnx_set_ints(x, "pads", 4, pads);
}

static bool window_take(tutti_onnx_import *m, const char *name, int count, int64_t lowest,
                        int64_t *ret)
{
    const int64_t *values;
    int given = tutti__onnx_attr_ints(m, name, &values);
    if (given == 0)
        return true;
    for (int i = 0; i < given; i++)
        if (given != count || values[i] < lowest || values[i] > INT32_MAX) {
            tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "%s has %d entries, or some out of range",
                                  name, given);
            return false;
        }
    memcpy(ret, values, (size_t)count * sizeof *ret);
    return true;
}

/* SAME_LOWER puts the odd one first. */
static bool settle_same(tutti_onnx_import *m, tutti_sym x, const int64_t *size, bool lower,
                        tutti_onnx_window *w)
{
    tutti_type type = tutti_sym_type(x);
    for (int i = 0; i < w->axes; i++) {
        int64_t in = i + 1 < type.rank ? type.dims[i + 1] : -1, step = w->strides[i];
        int64_t out = (in + step - 1) / step;
        int64_t all = (out - 1) * step + (size[i] - 1) * w->dilations[i] + 1 - in;
        if (in < 0) {
            tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                                  "auto_pad SAME_LOWER needs dimensions that are known");
            return false;
        }
        all = all > 0 ? all : 0;
        w->pads[2 * i] = lower ? all - all / 2 : all / 2;
        w->pads[2 * i + 1] = all - w->pads[2 * i];
    }
    return true;
}

bool tutti__onnx_read_window(tutti_onnx_import *m, tutti_sym x, int axes, const int64_t *size,
                             tutti_onnx_window *ret)
{
    int64_t pads[6] = {0};
    *ret = (tutti_onnx_window){
        .axes = axes, .strides = {1, 1, 1}, .dilations = {1, 1, 1}, .padding = "explicit"};
    const char *auto_pad = tutti__onnx_attr_string(m, "auto_pad", "NOTSET");
    if (!x.node || !window_take(m, "strides", axes, 1, ret->strides) ||
        !window_take(m, "dilations", axes, 1, ret->dilations) ||
        !window_take(m, "pads", 2 * axes, 0, pads))
        return false;
    bool same = strcmp(auto_pad, "SAME_UPPER") == 0, lower = strcmp(auto_pad, "SAME_LOWER") == 0;
    if (!same && !lower && strcmp(auto_pad, "VALID") != 0 && strcmp(auto_pad, "NOTSET") != 0)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "auto_pad '%s' is not known", auto_pad);
    for (int i = 0; strcmp(auto_pad, "NOTSET") == 0 && i < axes; i++) {
        ret->pads[2 * i] = pads[i];
        ret->pads[2 * i + 1] = pads[axes + i];
    }
    tutti_type type = tutti_sym_type(x);
    bool known = true;
    for (int i = 1; i <= axes && i < type.rank; i++)
        known = known && type.dims[i] >= 0;
    if (same && !known)
        ret->padding = "same";
    else if ((same || lower) && !settle_same(m, x, size, lower, ret))
        return false;
    return m->status == TUTTI_OK;
}
