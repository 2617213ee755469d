/* lrn.c: local response normalisation over neighbouring channels, made of other operators. Sums
 * over neighbours are a product with a band matrix, which every device does fast. 16 bits are
 * computed in 32: f16 has no square of 300. */
#include "ops/composite.h"
#include "ops/network/network.h"

/* [channels, channels]: 1 where row j lies in the window of column c, which reaches from
 * c - floor((size - 1) / 2) to c + ceil((size - 1) / 2). */
static tutti_status band(tutti_graph *graph, tutti_dtype dtype, int64_t channels, int64_t size,
                         tutti_sym *ret)
{
    tutti_tensor *matrix, *cast;
    int64_t before = (size - 1) / 2, after = size - 1 - before, dims[] = {channels, channels};
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 2, dims, &matrix));
    for (int64_t j = 0; j < channels; j++)
        for (int64_t c = 0; c < channels; c++)
            tutti_tensor_set(matrix, j * channels + c, j >= c - before && j <= c + after);
    tutti_status status = tutti_tensor_cast(matrix, dtype, &cast);
    tutti_tensor_release(matrix);
    TUTTI_TRY(status);
    *ret = tutti_constant(graph, cast);
    tutti_tensor_release(cast);
    return TUTTI_OK;
}

static tutti_status lrn_check(const tutti_type *x, int64_t size)
{
    char text[TUTTI_TYPE_TEXT];
    int64_t channels = x->rank < 1 ? 0 : x->dims[x->rank - 1];
    if (!tutti_dtype_is_float(x->dtype) || x->rank < 2 || channels < 1 || channels > 1 << 14)
        return tutti_fail(
            TUTTI_INVALID,
            "lrn: x is %s, needs floats [batch, ..., channels] with a known number of "
            "channels, at most 16384",
            tutti_type_text(x, text));
    if (size < 1 || size > INT32_MAX)
        return tutti_fail(TUTTI_INVALID, "lrn: size is %lld, needs 1 to %d", (long long)size,
                          INT32_MAX);
    return TUTTI_OK;
}

tutti_sym tutti_lrn_with(tutti_sym x, int64_t size, const tutti_lrn_options *given)
{
    TAKE_OPTIONS(tutti_lrn_options, o, given);
    if (!tutti__usable("lrn", x))
        return TUTTI_POISON;
    double alpha = o.alpha == 0 ? 1e-4 : o.alpha, beta = o.beta == 0 ? 0.75 : o.beta;
    double bias = o.bias == 0 ? 1 : o.bias;
    tutti_type type = tutti_sym_type(x);
    tutti_sym wide = tutti__widened(x), near = TUTTI_NO_SYM;
    tutti_dtype dtype = tutti_sym_type(wide).dtype;
    tutti_status status = lrn_check(&type, size);
    if (status == TUTTI_OK)
        status = band(tutti_sym_graph(x), dtype, type.dims[type.rank - 1], size, &near);
    if (status != TUTTI_OK)
        return tutti__poison(tutti_sym_graph(x), status, "%s", tutti_error_message());
    tutti_sym squares = tutti_matmul(tutti_square(wide), near);
    tutti_sym base = tutti_add(tutti_mul(squares, alpha / (double)size), bias);
    tutti_sym y = tutti_mul(wide, tutti_pow(base, -beta));
    return tutti__narrowed(y, type.dtype);
}

const tutti_composite tutti_composite_lrn = {
    .name = "lrn",
    .category = "network",
    .doc =
        "lrn(x, size): y[c] = x[c] / (bias + alpha / size * sum of x[j]^2 over the `size` channels j round c)^beta",
    .made_of = "matmul with a band matrix and element-wise operators",
};
