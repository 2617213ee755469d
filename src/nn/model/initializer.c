/* initializer.c: initial values of weights by name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "nn/model/layer.h"

/* Those that need only numbers: a and b of tutti_init, as defaults and places of arguments. */
static const struct plain {
    const char *name;
    tutti_init_kind kind;
    double a, b;
    int arguments; /* how many of a, b may be given */
} plains[] = {
    {"zeros", TUTTI_INIT_FULL, 0, 0, 0},
    {"ones", TUTTI_INIT_FULL, 1, 0, 0},
    {"constant", TUTTI_INIT_FULL, 0, 0, 1},
    {"uniform", TUTTI_INIT_UNIFORM, -0.05, 0.05, 2},
    {"normal", TUTTI_INIT_NORMAL, 0, 0.05, 2},
    {"truncated_normal", TUTTI_INIT_TRUNCATED_NORMAL, 0, 0.05, 2},
    {"glorot_uniform", TUTTI_INIT_SCALED_UNIFORM, 1, TUTTI_FAN_AVERAGE, 0},
    {"glorot_normal", TUTTI_INIT_SCALED_NORMAL, 1, TUTTI_FAN_AVERAGE, 0},
    {"he_uniform", TUTTI_INIT_SCALED_UNIFORM, 2, TUTTI_FAN_IN, 0},
    {"he_normal", TUTTI_INIT_SCALED_NORMAL, 2, TUTTI_FAN_IN, 0},
    {"lecun_uniform", TUTTI_INIT_SCALED_UNIFORM, 1, TUTTI_FAN_IN, 0},
    {"lecun_normal", TUTTI_INIT_SCALED_NORMAL, 1, TUTTI_FAN_IN, 0},
};

/* Rows as vectors of length `columns`, each made orthogonal to those before and of length 1. */
static void orthogonalise(double *rows, int64_t count, int64_t columns)
{
    for (int64_t i = 0; i < count; i++) {
        double *row = rows + i * columns, length = 0;
        for (int pass = 0; pass < 2; pass++) /* twice is enough (Kahan, Parlett) */
            for (int64_t k = 0; k < i; k++) {
                const double *other = rows + k * columns;
                double dot = 0;
                for (int64_t c = 0; c < columns; c++)
                    dot += row[c] * other[c];
                for (int64_t c = 0; c < columns; c++)
                    row[c] -= dot * other[c];
            }
        for (int64_t c = 0; c < columns; c++)
            length += row[c] * row[c];
        length = length > 0 ? sqrt(length) : 1;
        for (int64_t c = 0; c < columns; c++)
            row[c] /= length;
    }
}

/* gain Q of a random matrix [product of all but the last, last]. */
static tutti_status orthogonal(const tutti_type *type, double gain, uint64_t seed, const char *name,
                               tutti_tensor **ret)
{
    int64_t total = tutti_type_count(type);
    int64_t last = type->rank > 0 ? type->dims[type->rank - 1] : 1;
    if (type->rank < 2 || last == 0)
        return tutti_fail(TUTTI_INVALID, "orthogonal needs a weight of two or more dimensions");
    int64_t first = total / last, small = first < last ? first : last, large = total / small;
    if (small > 8192)
        return tutti_fail(TUTTI_TOO_LARGE, "orthogonal is for at most 8192 rows or columns");
    double *rows = calloc((size_t)(total > 0 ? total : 1), sizeof *rows);
    if (!rows)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an orthogonal matrix");
    tutti_random_key key = {tutti__hash_string(seed, name), 0};
    for (int64_t i = 0; i < total; i++)
        rows[i] = tutti__random_normal(key, (uint64_t)i);
    orthogonalise(rows, small, large);
    tutti_status status = tutti_tensor_create(type->dtype, type->rank, type->dims, ret);
    for (int64_t i = 0; status == TUTTI_OK && i < total; i++)
        tutti_tensor_set(*ret, i,
                         gain * (first <= last ? rows[i] : rows[i % last * large + i / last]));
    free(rows);
    return status;
}

static tutti_status identity(const tutti_type *type, double gain, tutti_tensor **ret)
{
    if (type->rank != 2)
        return tutti_fail(TUTTI_INVALID, "identity needs a weight of two dimensions");
    TUTTI_TRY(tutti_tensor_create(type->dtype, type->rank, type->dims, ret));
    for (int64_t i = 0; i < type->dims[0] && i < type->dims[1]; i++)
        tutti_tensor_set(*ret, i * type->dims[1] + i, gain);
    return TUTTI_OK;
}

/* The bias of an lstm, whose second quarter belongs to the forget gate. */
static tutti_status unit_forget(const tutti_type *type, tutti_tensor **ret)
{
    if (type->rank != 1 || type->dims[0] % 4 != 0)
        return tutti_fail(TUTTI_INVALID, "unit_forget needs a vector of four equal parts");
    TUTTI_TRY(tutti_tensor_create(type->dtype, type->rank, type->dims, ret));
    for (int64_t i = type->dims[0] / 4; i < type->dims[0] / 2; i++)
        tutti_tensor_set(*ret, i, 1);
    return TUTTI_OK;
}

tutti_status tutti__initializer(const char *text, const tutti_type *type, uint64_t seed,
                                const char *name, tutti_init *ret)
{
    tutti_named_spec spec;
    tutti_tensor *tensor = NULL;
    TUTTI_TRY(tutti__spec_parse(text ? text : "glorot_uniform", &spec));
    for (size_t i = 0; i < TUTTI_COUNT(plains); i++) {
        const struct plain *plain = &plains[i];
        if (strcmp(plain->name, spec.name) != 0)
            continue;
        TUTTI_TRY(tutti__spec_takes(&spec, "initializer", plain->arguments));
        *ret = tutti_init_make(plain->kind, spec.count > 0 ? spec.values[0] : plain->a,
                               spec.count > 1 ? spec.values[1] : plain->b, type->rank, type->dims);
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti__spec_takes(&spec, "initializer", strcmp(spec.name, "unit_forget") != 0));
    double gain = spec.count > 0 ? spec.values[0] : 1;
    if (strcmp(spec.name, "orthogonal") == 0)
        TUTTI_TRY(orthogonal(type, gain, seed, name, &tensor));
    else if (strcmp(spec.name, "identity") == 0)
        TUTTI_TRY(identity(type, gain, &tensor));
    else if (strcmp(spec.name, "unit_forget") == 0)
        TUTTI_TRY(unit_forget(type, &tensor));
    else
        return tutti_fail(TUTTI_NOT_FOUND, "there is no initializer '%s'", spec.name);
    *ret = tutti_tensor_init(tensor);
    return TUTTI_OK;
}
