/* signal.c: Fourier transforms, as products with matrices of cosines and sines. */
#include "bridge/onnx.h"

#include <math.h>
#include <string.h>

#define LONGEST 16384 /* points of a transform */

typedef struct fourier {
    int64_t in, out, length;
    bool inverse;
    bool half; /* the last half of the spectrum is not there, because signals are real */
} fourier;

/* cos or sin of 2 pi k n / length: [in, out]. Of half a spectrum as the input each part but the
 * first, and of an even length the last, stands for two. */
static tutti_sym waves(tutti_onnx_import *m, const fourier *f, tutti_dtype dtype, bool sine)
{
    tutti_tensor *tensor;
    if (tutti_tensor_create(dtype, 2, (int64_t[]){f->in, f->out}, &tensor) != TUTTI_OK) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return TUTTI_NO_SYM;
    }
    for (int64_t i = 0; i < f->in; i++) {
        bool twice = f->inverse && f->half && i > 0 && 2 * i != f->length;
        double scale = f->inverse ? (twice ? 2 : 1) / (double)f->length : 1;
        for (int64_t k = 0; k < f->out; k++) {
            double angle = 2 * acos(-1) * (double)(i * k % f->length) / (double)f->length;
            tutti_tensor_set(tensor, i * f->out + k, scale * (sine ? sin(angle) : cos(angle)));
        }
    }
    tutti_sym sym = tutti_constant(m->graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

/* The transform along the last axis of a real part and, or not, an imaginary one: [.., out, 2], or
 * of an inverse one with half a spectrum [.., out, 1]:
 *   forward: re C + im S, im C - re S; inverse: re C - im S, im C + re S. */
static tutti_sym transformed(tutti_onnx_import *m, const fourier *f, tutti_sym re, tutti_sym im)
{
    tutti_dtype dtype = tutti_sym_type(re).dtype;
    tutti_sym c = waves(m, f, dtype, false), s = waves(m, f, dtype, true);
    if (m->status != TUTTI_OK)
        return TUTTI_NO_SYM;
    s = f->inverse ? tutti_neg(s) : s;
    tutti_sym y = tutti_matmul(re, c), z = tutti_neg(tutti_matmul(re, s));
    if (im.node) {
        y = tutti_add(y, tutti_matmul(im, s));
        z = tutti_add(z, tutti_matmul(im, c));
    }
    return f->inverse && f->half ? tutti_expand_dims(y, -1)
                                 : tutti_stack(TUTTI_SYMS(y, z), .axis = -1);
}

/* x [.., n] cut to, or filled up with zeros to, `size`. */
static tutti_sym sized(tutti_sym x, int64_t size)
{
    tutti_type type = tutti_sym_type(x);
    int64_t n = type.dims[type.rank - 1];
    if (n >= size)
        return n == size ? x : tutti_slice_axis(x, -1, 0, size);
    tutti_pad_options pad = {.struct_size = sizeof pad};
    pad.before.count = pad.after.count = type.rank;
    pad.after.values[type.rank - 1] = size - n;
    return tutti_pad_with(x, &pad);
}

/* The parts of x [.., n, 1 or 2]: [.., n] each; the imaginary one is none without. */
static bool parts_of(tutti_onnx_import *m, tutti_sym x, tutti_sym *re, tutti_sym *im)
{
    tutti_type type = tutti_sym_type(x);
    int64_t parts = type.rank > 0 ? type.dims[type.rank - 1] : 0;
    *im = TUTTI_NO_SYM;
    if (parts != 1 && parts != 2) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "its last dimension must be 1 or 2");
        return false;
    }
    *re = tutti_squeeze(tutti_slice_axis(x, -1, 0, 1), -1);
    if (parts == 2)
        *im = tutti_squeeze(tutti_slice_axis(x, -1, 1, 2), -1);
    return true;
}

/* Axis `axis` last. */
static tutti_sym moved(tutti_sym x, int axis)
{
    int64_t order[TUTTI_MAX_RANK];
    int rank = tutti_sym_type(x).rank, last = rank - 1;
    for (int i = 0; i < rank; i++)
        order[i] = i == last ? axis : i < axis ? i : i + 1;
    return axis == last ? x : (tutti_transpose)(x, rank, order);
}

static bool signal_settle(tutti_onnx_import *m, fourier *f, int64_t n)
{
    int64_t bins;
    if (!tutti__onnx_read_int(m, 1, -1, &f->length))
        return false;
    if (f->length < 0)
        f->length = f->inverse && f->half ? 2 * (n - 1) : n;
    bins = f->half ? f->length / 2 + 1 : f->length;
    f->in = f->inverse ? bins : f->length;
    f->out = f->inverse ? f->length : bins;
    if (n >= 0 && f->length >= 1 && f->length <= LONGEST)
        return true;
    tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                          "needs a known length of 1 to %d points, it has %lld", LONGEST,
                          (long long)f->length);
    return false;
}

static void read_dft(tutti_onnx_import *m)
{
    fourier f = {.inverse = tutti__onnx_attr_int(m, "inverse", 0) != 0,
                 .half = tutti__onnx_attr_int(m, "onesided", 0) != 0};
    tutti_sym x = tutti__onnx_sym(m, 0), re, im;
    int64_t axis = tutti__onnx_attr_int(m, "axis", 1);
    if (!x.node || (m->opset >= 20 && !tutti__onnx_read_int(m, 2, -2, &axis)) ||
        !parts_of(m, x, &re, &im))
        return;
    int rank = tutti_sym_type(x).rank;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank - 1) {
        tutti__onnx_read_fail(m, TUTTI_INVALID, "axis %lld is no axis of the signal",
                              (long long)axis);
        return;
    }
    if (!signal_settle(m, &f, tutti_sym_type(x).dims[axis]))
        return;
    re = sized(moved(re, (int)axis), f.in);
    if (im.node)
        im = sized(moved(im, (int)axis), f.in);
    tutti_sym y = transformed(m, &f, re, im); /* [.., out, parts] */
    if (!y.node)
        return;
    int64_t order[TUTTI_MAX_RANK];
    for (int i = 0; i < rank - 1; i++)
        order[i] = i == axis ? rank - 2 : i < axis ? i : i - 1;
    order[rank - 1] = rank - 1;
    tutti__onnx_made(m, 0, (tutti_transpose)(y, rank, order));
}

/* Frames of x [batch, n]: [batch, frames, length], one `step` behind the other. */
static tutti_sym framed(tutti_onnx_import *m, tutti_sym x, int64_t step, int64_t length)
{
    int64_t n = tutti_sym_type(x).dims[1], frames = (n - length) / step + 1;
    tutti_tensor *places;
    if (tutti_tensor_create(TUTTI_I64, 2, (int64_t[]){frames, length}, &places) != TUTTI_OK) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return TUTTI_NO_SYM;
    }
    for (int64_t i = 0; i < frames * length; i++)
        tutti_tensor_set_int(places, i, i / length * step + i % length);
    tutti_sym sym = tutti_constant(m->graph, places);
    tutti_tensor_release(places);
    return tutti_gather(x, sym, 1);
}

static void read_stft(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), re, im, window;
    window = tutti__onnx_has(m, 2) ? tutti__onnx_sym(m, 2) : TUTTI_NO_SYM;
    int64_t step, length = window.node ? tutti_sym_type(window).dims[0] : -1;
    if (!x.node || !tutti__onnx_read_int(m, 1, 0, &step) ||
        !tutti__onnx_read_int(m, 3, length, &length))
        return;
    if (tutti_sym_type(x).rank == 2)
        x = tutti_expand_dims(x, -1);
    int64_t n = tutti_sym_type(x).dims[1];
    if (n < 0 || step < 1 || length < 1 || length > n || length > LONGEST ||
        !parts_of(m, x, &re, &im)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "needs a known length, step and frame");
        return;
    }
    fourier f = {.length = length, .in = length, .half = tutti__onnx_attr_int(m, "onesided", 1)};
    f.half = f.half && !im.node;
    f.out = f.half ? length / 2 + 1 : length;
    re = framed(m, re, step, length);
    im = im.node ? framed(m, im, step, length) : im;
    if (window.node) {
        re = tutti_mul(re, window);
        im = im.node ? tutti_mul(im, window) : im;
    }
    if (m->status == TUTTI_OK)
        tutti__onnx_made(m, 0, transformed(m, &f, re, im));
}

/* ---- windows ---- */

/* a - b cos(2 pi i / n) + c cos(4 pi i / n), n the size or, symmetric, one less. */
static void read_window(tutti_onnx_import *m)
{
    static const struct {
        const char *type;
        double a, b, c;
    } kinds[] = {{"HannWindow", 0.5, 0.5, 0},
                 {"HammingWindow", 25.0 / 46, 21.0 / 46, 0},
                 {"BlackmanWindow", 0.42, 0.5, 0.08}};
    int64_t size, type = tutti__onnx_attr_int(m, "output_datatype", 1);
    tutti_dtype dtype = tutti__onnx_dtype_of(type);
    tutti_tensor *tensor;
    size_t k = 0;
    if (!tutti__onnx_read_int(m, 0, 0, &size))
        return;
    while (strcmp(m->rule->type, kinds[k].type) != 0)
        k++;
    if (size < 0 || size > 1 << 24 || !tutti_dtype_is_float(dtype) ||
        tutti_tensor_create(dtype, 1, &size, &tensor) != TUTTI_OK) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "is of %s or too long",
                              tutti__onnx_element(type));
        return;
    }
    double n = (double)(tutti__onnx_attr_int(m, "periodic", 1) ? size : size - 1);
    for (int64_t i = 0; i < size; i++) {
        double angle = n > 0 ? 2 * acos(-1) * (double)i / n : 0;
        tutti_tensor_set(tensor, i,
                         kinds[k].a - kinds[k].b * cos(angle) + kinds[k].c * cos(2 * angle));
    }
    tutti__onnx_made_value(m, 0, tensor);
}

static void read_det(tutti_onnx_import *m)
{
    tutti__onnx_made(m, 0, tutti_det(tutti__onnx_sym(m, 0)));
}

const tutti_onnx_op tutti_onnx_dft = {
    .type = "DFT",
    .read = read_dft,
    .note = "of a known length",
};

const tutti_onnx_op tutti_onnx_stft = {
    .type = "STFT",
    .read = read_stft,
    .note = "of a known length",
};

const tutti_onnx_op tutti_onnx_hann_window = {
    .type = "HannWindow",
    .read = read_window,
};

const tutti_onnx_op tutti_onnx_hamming_window = {
    .type = "HammingWindow",
    .read = read_window,
};

const tutti_onnx_op tutti_onnx_blackman_window = {
    .type = "BlackmanWindow",
    .read = read_window,
};

const tutti_onnx_op tutti_onnx_det = {
    .op = "det",
    .type = "Det",
    .write = tutti__onnx_write_plain,
    .read = read_det,
};
