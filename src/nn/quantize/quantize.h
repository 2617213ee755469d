/* quantize.h: which products of a model become integers, and the ranges of what they multiply. */
#ifndef TUTTI_NN_QUANTIZE_QUANTIZE_H
#define TUTTI_NN_QUANTIZE_QUANTIZE_H

#include "nn/training/trainer.h"
#include "tutti/quantize.h"

/* A matmul or conv2d of f32 with a weight. */
typedef struct tutti_quantized_node {
    const tutti_node *node;
    float low, high; /* of its first input; 0 is inside */
} tutti_quantized_node;

typedef struct tutti_quantizing {
    tutti_model *model;
    int64_t least_terms; /* in a sum; shorter ones stay f32 */
    bool *needed;        /* by a node's id: an answer needs it */
    TUTTI_VEC(tutti_quantized_node) found;
} tutti_quantizing;

/* Whether an edge is the value of a variable; gives the variable. */
bool tutti__quantize_weight(tutti_edge edge, const tutti_node **ret_variable);
/* Fills needed and found. */
tutti_status tutti__quantize_find(tutti_quantizing *q);
/* Runs the model on `batches` batches (0: all) and widens the ranges. */
tutti_status tutti__quantize_calibrate(tutti_quantizing *q, tutti_dataset *data, int64_t batches);
/* y = node in integers, in x's graph: x the first input, weight the second one's value. */
tutti_status tutti__quantize_replace(const tutti_quantized_node *node, tutti_sym x,
                                     tutti_tensor *weight, tutti_sym *ret);

#endif
