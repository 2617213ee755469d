/* learned.c: the operators of ai.onnx.ml but for trees: scaling, encoding, linear models. */
#include "bridge/onnx/learned.h"
#include "ops/build.h"

#include <math.h>
#include <string.h>

#include "bridge/onnx/patterns.h"

size_t tutti__onnx_float_count(const tutti_onnx_import *m, const char *name)
{
    const tutti_onnx_attr *attr = tutti__onnx_attr(m->node, name, ONNX_FLOATS);
    return attr ? attr->floats.count : 0;
}

tutti_sym tutti__onnx_floats(tutti_onnx_import *m, const char *name, int rank, const int64_t *dims)
{
    const tutti_onnx_attr *attr = tutti__onnx_attr(m->node, name, ONNX_FLOATS);
    tutti_tensor *tensor;
    int64_t count = 1;
    if (!attr || m->status != TUTTI_OK)
        return TUTTI_NO_SYM;
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0 || !tutti__mul_size(count, dims[i], &count))
            count = -1;
    if (count != (int64_t)attr->floats.count ||
        tutti_tensor_from(TUTTI_F32, rank, dims, attr->floats.items, &tensor) != TUTTI_OK) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "%s has %zu numbers", name, attr->floats.count);
        return TUTTI_NO_SYM;
    }
    tutti_sym sym = tutti_constant(m->graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

tutti_sym tutti__onnx_features(tutti_onnx_import *m, int i)
{
    tutti_sym x = tutti__onnx_sym(m, i);
    return x.node && tutti_sym_type(x).dtype != TUTTI_F32 ? tutti_cast(x, TUTTI_F32) : x;
}

tutti_sym tutti__onnx_transformed(tutti_onnx_import *m, tutti_sym scores)
{
    const char *how = tutti__onnx_attr_string(m, "post_transform", "NONE");
    if (strcmp(how, "NONE") == 0)
        return scores;
    if (strcmp(how, "LOGISTIC") == 0)
        return tutti_sigmoid(scores);
    if (strcmp(how, "SOFTMAX") == 0)
        return tutti_softmax(scores);
    tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "post_transform %s is not supported", how);
    return scores;
}

tutti_sym tutti__onnx_labels(tutti_onnx_import *m, size_t *ret_count)
{
    const tutti_onnx_attr *ints = tutti__onnx_attr(m->node, "classlabels_ints", ONNX_INTS);
    const tutti_onnx_attr *texts = tutti__onnx_attr(m->node, "classlabels_strings", ONNX_STRINGS);
    tutti_tensor *tensor;
    if (!ints)
        ints = tutti__onnx_attr(m->node, "classlabels_int64s", ONNX_INTS);
    *ret_count = ints ? ints->ints.count : texts ? texts->strings.count : 0;
    if (*ret_count == 0)
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "has no classes");
    if (m->status != TUTTI_OK)
        return TUTTI_NO_SYM;
    if (tutti_tensor_create(ints ? TUTTI_I64 : TUTTI_STRING, 1, (int64_t[]){(int64_t)*ret_count},
                            &tensor) != TUTTI_OK) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return TUTTI_NO_SYM;
    }
    for (size_t i = 0; i < *ret_count; i++) {
        if (ints)
            tutti_tensor_set_int(tensor, (int64_t)i, ints->ints.items[i]);
        else if (tutti_tensor_set_string(tensor, (int64_t)i, texts->strings.items[i],
                                         (int64_t)strlen(texts->strings.items[i])) != TUTTI_OK)
            tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
    }
    tutti_sym sym = tutti_constant(m->graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

void tutti__onnx_classified(tutti_onnx_import *m, tutti_sym scores)
{
    size_t classes;
    tutti_sym labels = tutti__onnx_labels(m, &classes);
    if (m->status != TUTTI_OK || !scores.node)
        return;
    tutti_sym after = tutti__onnx_transformed(m, scores);
    if (classes == 2 && tutti_sym_type(scores).dims[1] == 1) {
        after = tutti_concatenate(TUTTI_SYMS(tutti_add(tutti_neg(after), 1), after), .axis = 1);
        scores = after;
    }
    tutti__onnx_made(m, 0, tutti_gather(labels, tutti_argmax(scores, 1), 0));
    tutti__onnx_made(m, 1, after);
}

/* ---- linear models ---- */

/* x coefficients^T + intercepts: [rows, targets]. */
static tutti_sym linear(tutti_onnx_import *m, int64_t targets)
{
    tutti_sym x = tutti__onnx_features(m, 0);
    size_t count = tutti__onnx_float_count(m, "coefficients");
    if (!x.node || targets < 1 || count % (size_t)targets != 0) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "%zu coefficients for %lld targets", count,
                              (long long)targets);
        return TUTTI_NO_SYM;
    }
    tutti_sym w =
        tutti__onnx_floats(m, "coefficients", 2, (int64_t[]){targets, (int64_t)count / targets});
    if (m->status != TUTTI_OK || !w.node)
        return TUTTI_NO_SYM;
    tutti_sym y = tutti_matmul(x, w, .transpose_b = true);
    tutti_sym b = tutti__onnx_floats(m, "intercepts", 1, &targets);
    return b.node ? tutti_add(y, b) : y;
}

static void read_linear_regressor(tutti_onnx_import *m)
{
    tutti_sym y = linear(m, tutti__onnx_attr_int(m, "targets", 1));
    if (y.node)
        tutti__onnx_made(m, 0, tutti__onnx_transformed(m, y));
}

static void read_linear_classifier(tutti_onnx_import *m)
{
    size_t classes;
    tutti__onnx_labels(m, &classes);
    size_t rows = tutti__onnx_float_count(m, "intercepts");
    tutti__onnx_classified(m, linear(m, (int64_t)(rows > 0 ? rows : classes)));
}

/* ---- scaling ---- */

/* (x - offset) * scale, of one number or one for each column. */
static void read_scaler(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_features(m, 0);
    int64_t offsets = (int64_t)tutti__onnx_float_count(m, "offset");
    int64_t scales = (int64_t)tutti__onnx_float_count(m, "scale");
    tutti_sym offset = tutti__onnx_floats(m, "offset", 1, &offsets);
    tutti_sym scale = tutti__onnx_floats(m, "scale", 1, &scales);
    x = offset.node ? tutti_sub(x, offset) : x;
    tutti__onnx_made(m, 0, scale.node ? tutti_mul(x, scale) : tutti_identity(x));
}

static void read_normalizer(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_features(m, 0);
    const char *norm = tutti__onnx_attr_string(m, "norm", "MAX");
    if (!x.node)
        return;
    tutti_axes last = TUTTI_AXES(-1);
    tutti_sym size = strcmp(norm, "MAX") == 0 ? tutti_max(x, .axes = last, .keepdims = true)
                                              : tutti_norm(x, .axes = last, .keepdims = true,
                                                           .ord = strcmp(norm, "L1") == 0 ? 1 : 2);
    tutti_sym none = tutti_equal(size, 0);
    tutti__onnx_made(m, 0, tutti_div(x, tutti_where(none, 1, size)));
}

static void read_binarizer(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (!x.node)
        return;
    tutti_sym limit = tutti__scalar_like(x, tutti__onnx_attr_float(m, "threshold", 0));
    tutti__onnx_made(m, 0, tutti_cast(tutti_greater(x, limit), tutti_sym_type(x).dtype));
}

/* What is missing (NaN, or a number) takes the column's value. */
static void read_imputer(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_features(m, 0);
    int64_t count = (int64_t)tutti__onnx_float_count(m, "imputed_value_floats");
    tutti_sym values = tutti__onnx_floats(m, "imputed_value_floats", 1, &count);
    double lost = tutti__onnx_attr_float(m, "replaced_value_float", 0);
    if (!x.node || !values.node) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "fills in integers");
        return;
    }
    tutti_sym missing = isnan(lost) ? tutti_is_nan(x) : tutti_equal(x, lost);
    tutti__onnx_made(m, 0, tutti_where(missing, values, x));
}

/* Columns of x, along the last axis. */
static void read_feature_extractor(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), y = tutti__onnx_sym(m, 1);
    if (!x.node || !y.node)
        return;
    bool vector = tutti_sym_type(x).rank == 1;
    tutti_sym picked = tutti_gather(x, tutti_reshape(y, -1), -1);
    tutti__onnx_made(m, 0, vector ? tutti_expand_dims(picked, 0) : picked);
}

/* ---- encoding ---- */

/* A list attribute as a constant, whichever of three kinds is there. */
static tutti_sym list_of(tutti_onnx_import *m, const char *ints, const char *floats,
                         const char *texts)
{
    const tutti_onnx_attr *i = tutti__onnx_attr(m->node, ints, ONNX_INTS);
    const tutti_onnx_attr *f = tutti__onnx_attr(m->node, floats, ONNX_FLOATS);
    const tutti_onnx_attr *s = tutti__onnx_attr(m->node, texts, ONNX_STRINGS);
    int64_t count = i   ? (int64_t)i->ints.count
                    : f ? (int64_t)f->floats.count
                    : s ? (int64_t)s->strings.count
                        : 0;
    tutti_tensor *tensor;
    if (count == 0 || tutti_tensor_create(i   ? TUTTI_I64
                                          : f ? TUTTI_F32
                                              : TUTTI_STRING,
                                          1, &count, &tensor) != TUTTI_OK)
        return TUTTI_NO_SYM;
    for (int64_t k = 0; k < count; k++) {
        if (i)
            tutti_tensor_set_int(tensor, k, i->ints.items[k]);
        else if (f)
            tutti_tensor_set(tensor, k, (double)f->floats.items[k]);
        else if (tutti_tensor_set_string(tensor, k, s->strings.items[k],
                                         (int64_t)strlen(s->strings.items[k])) != TUTTI_OK)
            tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
    }
    tutti_sym sym = tutti_constant(m->graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

/* [.., keys]: which of the keys each element is. */
static tutti_sym matches(tutti_sym x, tutti_sym keys)
{
    tutti_sym wide = tutti_expand_dims(x, -1);
    if (tutti_sym_type(x).dtype == TUTTI_STRING)
        return tutti_string_equal(wide, keys);
    if (tutti_sym_type(x).dtype != tutti_sym_type(keys).dtype)
        wide = tutti_cast(wide, tutti_sym_type(keys).dtype);
    return tutti_equal(wide, keys);
}

static void read_one_hot_encoder(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), keys = list_of(m, "cats_int64s", "", "cats_strings");
    if (x.node && keys.node)
        tutti__onnx_made(m, 0, tutti_cast(matches(x, keys), TUTTI_F32));
    else
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "has no categories");
}

/* The value of each element's key; what has none gets the default. */
static void read_label_encoder(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), other;
    tutti_sym keys = list_of(m, "keys_int64s", "keys_floats", "keys_strings");
    tutti_sym values = list_of(m, "values_int64s", "values_floats", "values_strings");
    if (!x.node || !keys.node || !values.node) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "its keys and values are no lists");
        return;
    }
    tutti_dtype dtype = tutti_sym_type(values).dtype;
    if (dtype == TUTTI_STRING) {
        const char *text = tutti__onnx_attr_string(m, "default_string", "_Unused");
        tutti_tensor *tensor;
        if (tutti_tensor_create(TUTTI_STRING, 0, NULL, &tensor) != TUTTI_OK ||
            tutti_tensor_set_string(tensor, 0, text, (int64_t)strlen(text)) != TUTTI_OK)
            return;
        other = tutti_constant(m->graph, tensor);
        tutti_tensor_release(tensor);
    } else {
        double number = dtype == TUTTI_F32 ? tutti__onnx_attr_float(m, "default_float", -0.0)
                                           : (double)tutti__onnx_attr_int(m, "default_int64", -1);
        other = tutti_scalar(m->graph, dtype, number);
    }
    tutti_sym hit = matches(x, keys);
    tutti_sym place = tutti_argmax(tutti_cast(hit, TUTTI_I32), -1);
    tutti__onnx_made(
        m, 0,
        tutti_where(tutti_any(hit, .axes = TUTTI_AXES(-1)), tutti_gather(values, place, 0), other));
}

/* Several inputs side by side. */
static void read_feature_vectorizer(tutti_onnx_import *m)
{
    tutti_sym parts[16];
    size_t count = m->node->inputs.count;
    for (size_t i = 0; i < count && i < 16; i++) {
        parts[i] = tutti__onnx_features(m, (int)i);
        if (parts[i].node && tutti_sym_type(parts[i]).rank == 1)
            parts[i] = tutti_expand_dims(parts[i], 1);
    }
    if (m->status == TUTTI_OK && count > 0 && count <= 16)
        tutti__onnx_made(m, 0, tutti_concatenate((int)count, parts, .axis = 1));
}

const tutti_onnx_op tutti_onnx_linear_regressor = {
    .type = "LinearRegressor",
    .domain = "ai.onnx.ml",
    .read = read_linear_regressor,
};

const tutti_onnx_op tutti_onnx_linear_classifier = {
    .type = "LinearClassifier",
    .domain = "ai.onnx.ml",
    .read = read_linear_classifier,
};

const tutti_onnx_op tutti_onnx_scaler = {
    .type = "Scaler",
    .domain = "ai.onnx.ml",
    .read = read_scaler,
};

const tutti_onnx_op tutti_onnx_normalizer = {
    .type = "Normalizer",
    .domain = "ai.onnx.ml",
    .read = read_normalizer,
};

const tutti_onnx_op tutti_onnx_binarizer = {
    .type = "Binarizer",
    .domain = "ai.onnx.ml",
    .read = read_binarizer,
};

const tutti_onnx_op tutti_onnx_imputer = {
    .type = "Imputer",
    .domain = "ai.onnx.ml",
    .read = read_imputer,
};

const tutti_onnx_op tutti_onnx_array_feature_extractor = {
    .type = "ArrayFeatureExtractor",
    .domain = "ai.onnx.ml",
    .read = read_feature_extractor,
};

const tutti_onnx_op tutti_onnx_one_hot_encoder = {
    .type = "OneHotEncoder",
    .domain = "ai.onnx.ml",
    .read = read_one_hot_encoder,
};

const tutti_onnx_op tutti_onnx_label_encoder = {
    .type = "LabelEncoder",
    .domain = "ai.onnx.ml",
    .read = read_label_encoder,
};

const tutti_onnx_op tutti_onnx_feature_vectorizer = {
    .type = "FeatureVectorizer",
    .domain = "ai.onnx.ml",
    .read = read_feature_vectorizer,
};
