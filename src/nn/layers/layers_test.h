/* layers_test.h: layers against numbers that Keras gives. Inputs and weights follow a rule, so that
 * only results have to be written down: element i of tensor number n is
 * ((37 i + 11 n + 5) mod 23 - 11) / 10; inputs have number 0, weights 1, 2, … in the order they
 * were made; variances are |…| + 1/2. */
#ifndef TUTTI_NN_LAYERS_TEST_H
#define TUTTI_NN_LAYERS_TEST_H

#include <math.h>
#include <string.h>

#include "base/test.h"
#include "tutti/tutti.h"

#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define LAYERS(...)                                                                                \
    (int)(sizeof((tutti_layer *[]){__VA_ARGS__}) / sizeof(tutti_layer *)), (tutti_layer *[])       \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define TENSORS(...)                                                                               \
    (int)(sizeof((tutti_tensor *[]){__VA_ARGS__}) / sizeof(tutti_tensor *)), (tutti_tensor *[])    \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static inline double rule(int number, int64_t i)
{
    return (double)((37 * i + 11 * number + 5) % 23 - 11) / 10;
}

static inline tutti_tensor *numbered(int number, int rank, const int64_t *dims)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, rank, dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, rule(number, i));
    return tensor;
}

static inline tutti_tensor *floats(int rank, const int64_t *dims)
{
    return numbered(0, rank, dims);
}

static inline tutti_tensor *ids(int rank, const int64_t *dims, const int64_t *values)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_from(TUTTI_I64, rank, dims, values, &tensor));
    return tensor;
}

static inline tutti_tensor *texts(int64_t count, const char *const *values)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(TUTTI_STRING, 1, &count, &tensor));
    for (int64_t i = 0; i < count; i++)
        CHECK_OK(tutti_tensor_set_string(tensor, i, values[i], (int64_t)strlen(values[i])));
    return tensor;
}

/* Gives every weight its numbers. */
static inline void number_weights(tutti_model *model)
{
    for (int i = 0; i < tutti_weight_count(model); i++) {
        tutti_weight_info info;
        CHECK_OK(tutti_weight_at(model, i, &info));
        tutti_tensor *value = numbered(i + 1, info.type.rank, info.type.dims);
        for (int64_t k = 0; strstr(info.name, "variance") && k < tutti_tensor_count(value); k++)
            tutti_tensor_set(value, k, fabs(rule(i + 1, k)) + 0.5);
        CHECK_OK(tutti_set_weight(model, info.name, value));
        tutti_tensor_release(value);
    }
}

static inline void check_tensor(tutti_tensor *actual, int rank, const int64_t *dims,
                                const double *expected)
{
    CHECK_INT(tutti_tensor_rank(actual), rank);
    for (int i = 0; i < rank; i++)
        CHECK_INT(tutti_tensor_dims(actual)[i], dims[i]);
    for (int64_t i = 0; i < tutti_tensor_count(actual); i++)
        CHECK_NEAR(tutti_tensor_get(actual, i), expected[i], 2e-5 * (1 + fabs(expected[i])));
}

/* Builds the model for these inputs and numbers its weights. */
static inline void build_with(tutti_model *model, int count, tutti_tensor **inputs)
{
    tutti_tensor *y;
    CHECK_OK(tutti_predict_on_batch(model, count, inputs, 1, &y));
    tutti_tensor_release(y);
    number_weights(model);
}

/* Compares the (first) output of the model whose weights are numbered. */
static inline void expect_model(tutti_model *model, int count, tutti_tensor **inputs, int rank,
                                const int64_t *dims, const double *expected)
{
    tutti_tensor *y;
    build_with(model, count, inputs);
    CHECK_OK(tutti_predict_on_batch(model, count, inputs, 1, &y));
    check_tensor(y, rank, dims, expected);
    tutti_tensor_release(y);
    for (int i = 0; i < count; i++)
        tutti_tensor_release(inputs[i]);
}

/* Layers one after the other. */
static inline void expect(int count, tutti_layer **layers, tutti_tensor *input, int rank,
                          const int64_t *dims, const double *expected)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = (tutti_sequential)(job, count, layers);
    expect_model(model, 1, &input, rank, dims, expected);
    CHECK_INT(tutti_close(job), 0);
}

/* A model of inputs like these tensors. */
static inline tutti_model *model_like(tutti_job *job, int count, tutti_tensor **tensors,
                                      tutti_sym *ret_inputs)
{
    tutti_model *model = tutti_functional(job);
    for (int i = 0; i < count; i++) {
        tutti_type type = *tutti_tensor_type(tensors[i]);
        const char *name = (const char *[]){"a", "b", "c", "d", "e"}[i];
        memmove(type.dims, type.dims + 1, sizeof type.dims - sizeof type.dims[0]);
        type.rank--;
        ret_inputs[i] = (tutti_input)(model, name, type);
    }
    return model;
}

/* A layer of several inputs. */
static inline void expect_of(tutti_layer *layer, int count, tutti_tensor **inputs, int rank,
                             const int64_t *dims, const double *expected)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_sym syms[8];
    tutti_model *model = model_like(job, count, inputs, syms);
    tutti_output(model, "y", tutti_layer_apply(layer, count, syms));
    expect_model(model, count, inputs, rank, dims, expected);
    CHECK_INT(tutti_close(job), 0);
}

/* That a layer refuses this input with a message that holds `part`. */
static inline void refuses(tutti_layer *layer, tutti_tensor *input, const char *part)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_sym x, y;
    tutti_model *model = model_like(job, 1, &input, &x);
    y = tutti_layer_apply(layer, 1, &x);
    CHECK(!tutti_sym_ok(y));
    CHECK(tutti_model_check(model) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), part);
    tutti_tensor_release(input);
    CHECK_INT(tutti_close(job), 1);
}

static inline tutti_sym squares(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    tutti_type type = tutti_sym_type(guess);
    tutti_sym all = tutti_square(tutti_sub(guess, truth));
    return type.rank > 1 ? tutti_mean(tutti_nn_flatten(all), .axes = TUTTI_AXES(1)) : all;
}

/* Trains layers to give zeros and checks that the loss falls to `part` of its first value. */
static inline void learns(int count, tutti_layer **layers, tutti_tensor *input, double part)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = (tutti_sequential)(job, count, layers);
    tutti_tensor *y, *target;
    double first = 0, last = 0;
    CHECK_OK(tutti_predict_on_batch(model, 1, &input, 1, &y));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, tutti_tensor_rank(y), tutti_tensor_dims(y), &target));
    for (int64_t i = 0; i < tutti_tensor_count(target); i++)
        tutti_tensor_set(target, i, 0.3);
    CHECK_OK(tutti_compile(model, .optimizer = tutti_adam(.learning_rate = 0.02),
                           .loss = tutti_custom_loss(squares, NULL, "squares")));
    for (int step = 0; step < 40; step++) {
        tutti_logs logs;
        tutti_tensor *both[2] = {input, target};
        CHECK_OK(tutti_train_on_batch(model, 2, both, &logs));
        last = tutti_logs_get(&logs, "loss");
        first = step == 0 ? last : first;
    }
    CHECK(first > 0);
    CHECK(last < part * first);
    tutti_tensor_release(y);
    tutti_tensor_release(target);
    tutti_tensor_release(input);
    CHECK_INT(tutti_close(job), 0);
}

#endif
