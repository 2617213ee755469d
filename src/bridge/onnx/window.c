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

static bool take(tutti_onnx_import *m, const char *name, int count, int64_t lowest, int64_t *ret)
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

bool tutti__onnx_read_window(tutti_onnx_import *m, int axes, tutti_onnx_window *ret)
{
    int64_t pads[4] = {0};
    *ret = (tutti_onnx_window){.strides = {1, 1}, .dilations = {1, 1}, .padding = "explicit"};
    const char *auto_pad = tutti__onnx_attr_string(m, "auto_pad", "NOTSET");
    if (!take(m, "strides", axes, 1, ret->strides) ||
        !take(m, "dilations", axes, 1, ret->dilations) || !take(m, "pads", 2 * axes, 0, pads))
        return false;
    for (int i = 0; i < axes; i++) {
        ret->pads[2 * i] = pads[i];
        ret->pads[2 * i + 1] = pads[axes + i];
    }
    if (strcmp(auto_pad, "SAME_UPPER") == 0)
        ret->padding = "same";
    else if (strcmp(auto_pad, "VALID") == 0)
        ret->padding = "valid";
    else if (strcmp(auto_pad, "NOTSET") != 0)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "auto_pad '%s' is not supported", auto_pad);
    if (strcmp(ret->padding, "explicit") != 0)
        memset(ret->pads, 0, sizeof ret->pads);
    return m->status == TUTTI_OK;
}
