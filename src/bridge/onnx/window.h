/* window.h: strides, dilations and padding of convolutions and pooling. ONNX's pads are
 * [top, left, bottom, right], ours [top, bottom, left, right]. */
#ifndef TUTTI_BRIDGE_ONNX_WINDOW_H
#define TUTTI_BRIDGE_ONNX_WINDOW_H

#include "bridge/onnx.h"

/* strides and pads (or auto_pad) of the node written last, from the present one's attributes;
 * `size` is the window's. */
void tutti__onnx_set_window(tutti_onnx_export *x, const int64_t size[2]);

typedef struct tutti_onnx_window {
    int64_t strides[2], dilations[2], pads[4]; /* pads in our order */
    const char *padding;
} tutti_onnx_window;
/* Of a node over 1 or 2 axes; false after a failure. */
bool tutti__onnx_read_window(tutti_onnx_import *m, int axes, tutti_onnx_window *ret);

#endif
