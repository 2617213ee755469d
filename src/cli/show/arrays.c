/* arrays.c: NPY, NPZ and IDX: names, types and ranges of arrays. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/viewer.h"

static int recognise_npy(const tutti_glance *glance)
{
    return glance->head_size > 6 && memcmp(glance->head, "\x93NUMPY", 6) == 0 ? 3 : 0;
}

static int recognise_npz(const tutti_glance *glance)
{
    return glance->head_size > 4 && memcmp(glance->head, "PK\3\4", 4) == 0 ? 2 : 0;
}

/* 00 00 type rank, or gzip with a name that says so. */
static int recognise_idx(const tutti_glance *glance)
{
    const uint8_t *h = glance->head;
    if (glance->head_size > 4 && h[0] == 0 && h[1] == 0 && h[2] >= 8 && h[2] <= 14 && h[3] >= 1 &&
        h[3] <= 8)
        return 2;
    return glance->head_size > 2 && h[0] == 0x1f && h[1] == 0x8b && strstr(glance->path, "idx") ? 2
                                                                                                : 0;
}

static void show_one(const char *name, const tutti_tensor *tensor, bool json)
{
    const tutti_type *type = tutti_tensor_type(tensor);
    int64_t count = tutti_tensor_count(tensor);
    tutti__show_tensor(name, type, count * (int64_t)tutti_dtype_size(type->dtype), json);
    if (json || type->dtype == TUTTI_STRING || count == 0)
        return;
    double low = tutti_tensor_get(tensor, 0), high = low, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = tutti_tensor_get(tensor, i);
        low = value < low ? value : low;
        high = value > high ? value : high;
        sum += value;
    }
    printf("  %-44s from %g to %g, mean %g\n", "", low, high, sum / (double)count);
}

static tutti_status show_npy(const tutti_glance *glance, bool json)
{
    tutti_tensor *tensor;
    TUTTI_TRY(tutti_npy_load(glance->path, &tensor));
    show_one("array", tensor, json);
    tutti_tensor_release(tensor);
    return TUTTI_OK;
}

static tutti_status show_npz(const tutti_glance *glance, bool json)
{
    tutti_named_tensors list = {0};
    TUTTI_TRY(tutti_npz_load(glance->path, &list));
    for (size_t i = 0; i < list.count; i++)
        show_one(list.items[i].name, list.items[i].tensor, json);
    tutti_named_tensors_clear(&list);
    return TUTTI_OK;
}

static tutti_status show_idx(const tutti_glance *glance, bool json)
{
    tutti_tensor *tensor;
    TUTTI_TRY(tutti_idx_load(glance->path, &tensor));
    show_one("array", tensor, json);
    tutti_tensor_release(tensor);
    return TUTTI_OK;
}

const tutti_viewer tutti_viewer_npy = {
    .kind = "NPY array",
    .recognise = recognise_npy,
    .show = show_npy,
};
const tutti_viewer tutti_viewer_npz = {
    .kind = "NPZ archive",
    .recognise = recognise_npz,
    .show = show_npz,
};
const tutti_viewer tutti_viewer_idx = {
    .kind = "IDX array",
    .recognise = recognise_idx,
    .show = show_idx,
};
