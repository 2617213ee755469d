/* normalization.c: features with mean 0 and variance 1, by numbers that are known before. */
#include "data/dataset.h"
#include "nn/layers/common.h"

#include <math.h>
#include <stdlib.h>

/* The numbers of a text as a constant of x's type, one for all or one for each feature. */
static tutti_sym constant(tutti_layer_call *call, const char *text, tutti_sym x, const char *what)
{
    tutti_type type = tutti_sym_type(x);
    int64_t features = type.rank > 0 ? type.dims[type.rank - 1] : 1;
    tutti_tensor *numbers;
    if (tutti__numbers_parse(text, &numbers) != TUTTI_OK)
        return tutti_layer_fail(call, "%s: %s", what, tutti_error_message());
    int64_t count = tutti_tensor_count(numbers);
    tutti_sym value = tutti_cast(tutti_constant(call->graph, numbers), type.dtype);
    tutti_tensor_release(numbers);
    if (count != 1 && features >= 0 && count != features)
        return tutti_layer_fail(call, "%s has %lld numbers, the input has %lld features", what,
                                (long long)count, (long long)features);
    return value;
}

static tutti_sym normalization_call(tutti_layer_call *call)
{
    const tutti_normalization_settings *s = call->settings;
    const tutti_building *building = call->graph->building;
    tutti_sym x = call->inputs[0];
    if (tutti_sym_type(x).dtype == TUTTI_STRING)
        return tutti_layer_fail(call, "takes numbers, the input is strings");
    if (!s->mean && !s->variance)
        return tutti_layer_fail(call, "has no mean and variance; give them or find them in data "
                                      "with tutti_adapt_normalization");
    if (!tutti_dtype_is_float(tutti_sym_type(x).dtype))
        x = tutti_cast(x, building->compute);
    tutti_sym mean = constant(call, tutti__text_or(s->mean, "0"), x, "mean");
    tutti_sym spread = tutti_sqrt(constant(call, tutti__text_or(s->variance, "1"), x, "variance"));
    if (!mean.node || !spread.node)
        return TUTTI_NO_SYM;
    return tutti_div(tutti_sub(x, mean), tutti_maximum(spread, 1e-7));
}

/* ---- from data ---- */

/* Sums of each feature, shifted by its first value so that large means cost no digits. */
typedef struct sums {
    int64_t features, count;
    double *shift, *sum, *square;
} sums;

static tutti_status normalization_begin(sums *all, const tutti_tensor *tensor, int64_t features)
{
    if (tutti_tensor_dtype(tensor) == TUTTI_STRING)
        return tutti_fail(TUTTI_INVALID, "tutti_adapt_normalization: the data is strings");
    double *memory = calloc((size_t)features * 3 + 1, sizeof *memory);
    if (!memory)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %lld features", (long long)features);
    *all = (sums){features, 0, memory, memory + features, memory + 2 * features};
    for (int64_t i = 0; i < features && i < tutti_tensor_count(tensor); i++)
        all->shift[i] = tutti_tensor_get(tensor, i);
    return TUTTI_OK;
}

static tutti_status normalization_add(sums *all, const tutti_tensor *tensor)
{
    int rank = tutti_tensor_rank(tensor);
    int64_t features = rank > 0 ? tutti_tensor_dims(tensor)[rank - 1] : 1;
    int64_t count = tutti_tensor_count(tensor);
    if (!all->shift)
        TUTTI_TRY(normalization_begin(all, tensor, features));
    if (features != all->features)
        return tutti_fail(TUTTI_INVALID,
                          "tutti_adapt_normalization: an element has %lld features, those before "
                          "%lld",
                          (long long)features, (long long)all->features);
    for (int64_t i = 0; i < count; i++) {
        double x = tutti_tensor_get(tensor, i) - all->shift[i % features];
        all->sum[i % features] += x;
        all->square[i % features] += x * x;
    }
    all->count += features > 0 ? count / features : 0;
    return TUTTI_OK;
}

static tutti_status read_all(tutti_dataset *data, int component, sums *all)
{
    tutti_iterator *iterator = tutti__iterate(data, 0);
    tutti_status status = iterator ? TUTTI_OK : tutti_job_check(tutti_dataset_job(data));
    while (iterator && status == TUTTI_OK) {
        tutti_element element;
        status = tutti_next_element(iterator, &element);
        if (status != TUTTI_OK || element.count == 0)
            break;
        status = component >= 0 && component < element.count
                     ? normalization_add(all, element.tensors[component])
                     : tutti_fail(TUTTI_OUT_OF_RANGE, "the data has no component %d", component);
        tutti_element_release(&element);
    }
    tutti_iterator_close(iterator);
    return status;
}

static tutti_status normalization_keep(tutti_layer *layer, const sums *all)
{
    tutti_text mean = {0}, variance = {0};
    tutti_normalization_settings *s = layer->settings;
    for (int64_t i = 0; i < all->features; i++) {
        double m = all->sum[i] / (double)all->count;
        double v = all->square[i] / (double)all->count - m * m;
        tutti__text_add(&mean, "%s%.9g", i > 0 ? "," : "", all->shift[i] + m);
        tutti__text_add(&variance, "%s%.9g", i > 0 ? "," : "", v > 0 ? v : 0);
    }
    const char *kept_mean = mean.failed ? NULL : tutti__arena_string(&layer->arena, mean.data);
    const char *kept = variance.failed ? NULL : tutti__arena_string(&layer->arena, variance.data);
    tutti__text_free(&mean);
    tutti__text_free(&variance);
    if (!kept_mean || !kept)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a normalization");
    s->mean = kept_mean;
    s->variance = kept;
    return TUTTI_OK;
}

tutti_status tutti_adapt_normalization(tutti_layer *layer, tutti_dataset *data, int component)
{
    sums all = {0};
    if (!data)
        return tutti_fail(TUTTI_INVALID, "tutti_adapt_normalization: there is no data");
    tutti_status status = tutti__layer_open(layer, "normalization", "tutti_adapt_normalization");
    if (status == TUTTI_OK)
        status = read_all(data, component, &all);
    if (status == TUTTI_OK && all.count == 0)
        status = tutti_fail(TUTTI_INVALID, "tutti_adapt_normalization: the data is empty");
    if (status == TUTTI_OK)
        status = normalization_keep(layer, &all);
    free(all.shift);
    return tutti_job_fail(tutti_dataset_job(data), status);
}

static const tutti_field fields[] = {
    TUTTI_TEXT_FIELD(tutti_normalization_settings, mean),
    TUTTI_TEXT_FIELD(tutti_normalization_settings, variance),
    {0},
};

const tutti_layer_kind tutti_layer_normalization = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "normalization",
    .doc = "normalization(): y = (x - mean) / max(sqrt(variance), 1e-7)",
    .settings_size = sizeof(tutti_normalization_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = normalization_call,
};
