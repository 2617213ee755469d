/* onnx.c: ONNX models: inputs, outputs, operators. */
#include <stdio.h>

#include "bridge/onnx.h"
#include "cli/viewer.h"

static int recognise(const tutti_glance *glance)
{
    return tutti__ends_with(glance->path, ".onnx") ? 4 : 0;
}

static tutti_status onnx_show(const tutti_glance *glance, bool json)
{
    tutti_text text = {0};
    tutti_status status = tutti__onnx_describe(glance->path, json, &text);
    if (status == TUTTI_OK && text.data)
        tutti__print_text(text.data);
    tutti__text_free(&text);
    return status;
}

const tutti_viewer tutti_viewer_onnx = {
    .kind = "ONNX model",
    .recognise = recognise,
    .show = onnx_show,
};
