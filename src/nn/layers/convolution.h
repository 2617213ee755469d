/* convolution.h: what the convolution layers share: weights by name and the fields for them. */
#ifndef TUTTI_NN_LAYERS_CONVOLUTION_H
#define TUTTI_NN_LAYERS_CONVOLUTION_H

#include "nn/layers/common.h"

/* The fields of a kernel and a bias. */
#define CONVOLUTION_WEIGHT_FIELDS(type)                                                            \
    TUTTI_TEXT_FIELD(type, activation), TUTTI_FLAG_FIELD(type, no_bias),                           \
        TUTTI_TEXT_FIELD(type, kernel_initializer), TUTTI_TEXT_FIELD(type, bias_initializer),      \
        TUTTI_TEXT_FIELD(type, kernel_regularizer), TUTTI_TEXT_FIELD(type, bias_regularizer),      \
        TUTTI_TEXT_FIELD(type, kernel_constraint), TUTTI_TEXT_FIELD(type, bias_constraint)

/* The fields of the kernels of a separable convolution and a bias. */
#define SEPARABLE_WEIGHT_FIELDS(type)                                                              \
    TUTTI_TEXT_FIELD(type, activation), TUTTI_FLAG_FIELD(type, no_bias),                           \
        TUTTI_TEXT_FIELD(type, depthwise_initializer),                                             \
        TUTTI_TEXT_FIELD(type, pointwise_initializer), TUTTI_TEXT_FIELD(type, bias_initializer),   \
        TUTTI_TEXT_FIELD(type, depthwise_regularizer),                                             \
        TUTTI_TEXT_FIELD(type, pointwise_regularizer), TUTTI_TEXT_FIELD(type, bias_regularizer),   \
        TUTTI_TEXT_FIELD(type, depthwise_constraint),                                              \
        TUTTI_TEXT_FIELD(type, pointwise_constraint), TUTTI_TEXT_FIELD(type, bias_constraint)

/* activation(y + bias) with the settings `s` of any convolution layer. */
#define CONVOLUTION_END(call, s, y)                                                                \
    tutti_nn_activation(                                                                           \
        (s)->no_bias                                                                               \
            ? (y)                                                                                  \
            : tutti_add(                                                                           \
                  y, tutti_weight(call, "bias", TUTTI_TYPE(TUTTI_F32, (s)->filters),               \
                                  .initializer = tutti__text_or((s)->bias_initializer, "zeros"),   \
                                  .regularizer = (s)->bias_regularizer,                            \
                                  .constraint = (s)->bias_constraint, .sharding = "channels")),    \
        (s)->activation)

/* The weight `what`_kernel of a separable convolution, whose dimensions have these names. */
#define SEPARABLE_KERNEL(call, s, what, shape, names)                                              \
    tutti_weight(call, #what "_kernel", shape, .initializer = (s)->what##_initializer,             \
                 .regularizer = (s)->what##_regularizer, .constraint = (s)->what##_constraint,     \
                 .sharding = names)

/* Whether there are filters; else the mistake is noted. */
static inline bool tutti__layer_filters(tutti_layer_call *call, int64_t filters)
{
    if (filters < 1)
        tutti_layer_fail(call, "%lld filters; needs at least 1", (long long)filters);
    return filters >= 1;
}

/* One axis of a transposed convolution, as Keras counts it: the size of its output, or 0 where it
 * is the operator's own and `ret_more` what is added to it. False, and the mistake noted, where the
 * size of the input must be known. */
typedef struct tutti_transposed_axis {
    int64_t in, kernel, stride, dilation, output_padding;
    bool same;
} tutti_transposed_axis;
bool tutti__transposed_axis(tutti_layer_call *call, const tutti_transposed_axis *axis,
                            int64_t *ret_size, int64_t *ret_more);

#endif
