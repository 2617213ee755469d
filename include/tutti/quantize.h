/* quantize.h: trained models in integers of 8 bits, for inference.
 *
 *     tutti_model *small = tutti_quantize_model(model, tutti_take(train, 50));
 *     tutti_predict(small, test, 1, &answers);
 *
 * Products and convolutions with weights run in bytes: the weights as i8 with a scale for each
 * column or filter, what they multiply as u8 with one scale and zero, from the smallest and largest
 * number that the calibration data brings there (static quantisation by min and max). Everything
 * else, and the sums, stay f32. */
#ifndef TUTTI_QUANTIZE_H
#define TUTTI_QUANTIZE_H

#include "tutti/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_quantize_model_options {
    size_t struct_size;
    const char *name; /* of the new model; "<name>_int8" */
    int64_t batches;  /* of the data, for calibration; 0: all */
    bool shallow;     /* also products of fewer than 32 terms, which are no faster in bytes */
} tutti_quantize_model_options;

/* A new functional model without trainable weights, which predicts as the given one does; the given
 * one stays as it is. The data is wired as for tutti_predict and must not be empty. NULL after an
 * error, which is the job's: the model has no products of f32 with weights, or holds operators that
 * change variables. */
TUTTI_API tutti_model *tutti_quantize_model_with(tutti_model *model, tutti_dataset *data,
                                                 const tutti_quantize_model_options *options);
#define tutti_quantize_model(model, data, ...)                                                     \
    TUTTI_AT(tutti_quantize_model_with((model), (data),                                            \
                                       TUTTI_OPTIONS(tutti_quantize_model_options, __VA_ARGS__)))

#ifdef __cplusplus
}
#endif
#endif
