/* sample.h: an operator's samples (tutti_op.samples) as nodes that can be run. For tests,
 * benchmarks, fuzzing and tutti_op_selftest.
 *
 * A sample is inputs, then, after a bar, attributes:
 *
 *     "f32[2,3] &f32[3]{0.1:2} i64[2]{=0,2} | axis=-1 dims=[1,2] dtype=f64 keep=true padding=same"
 *
 *   f32[2,3]         floats: uniform in [-1,1]; integers 0, 1 or 2; bools either; strings short
 *   {low:high}       floats in [low,high], integers in [low,high)
 *   {=1,0.5,-inf}    these elements; one alone stands for all
 *   &                the input is a variable's handle
 *   name=value       read by the operator's table of attributes; quotes round a string with spaces;
 *                    a tensor is written like an input, types like [f32[2],i64[]]
 *
 * Floats drawn from a range round zero keep |x| >= 0.05, away from the kinks of abs, relu and so
 * on. The same operator, text and seed give the same values everywhere. */
#ifndef TUTTI_OPS_SAMPLE_H
#define TUTTI_OPS_SAMPLE_H

#include "graph/graph.h"

typedef struct tutti_sample {
    const tutti_op *op;
    char text[240];
    int input_count, output_count, attr_count;
    tutti_type *types;       /* of the inputs; `handle` where one is written with & */
    tutti_tensor **values;   /* of the inputs, contiguous, one reference each */
    const tutti_attr *attrs; /* complete, in the order of op->attrs */
    tutti_graph *graph;      /* holds the node and its inputs, and nothing else */
    tutti_node *node;        /* its inputs are placeholders and, for handles, variables */
} tutti_sample;

tutti_status tutti__sample_parse(const tutti_op *op, const char *text, uint64_t seed,
                                 tutti_sample **ret_sample);
void tutti__sample_free(tutti_sample *sample); /* NULL is fine */

/* The same sample with every input of type `from` converted to `to`. Fails when the operator's
 * shape rule takes no such inputs. */
tutti_status tutti__sample_cast(const tutti_sample *sample, tutti_dtype from, tutti_dtype to,
                                tutti_sample **ret_sample);

/* What the operator's rules see: input types and attributes; outputs are the node's types. */
tutti_infer tutti__sample_rule(const tutti_sample *sample);

/* Runs the sample by its reference kernel; handles are copied first, so the sample stays as it is.
 * ret_outputs: sample->output_count tensors, the caller's to release. */
tutti_status tutti__sample_run(const tutti_sample *sample, tutti_tensor **ret_outputs);

/* The same on other inputs, of which there are sample->input_count; handles are updated in place.
 */
tutti_status tutti__sample_run_on(const tutti_sample *sample, tutti_tensor *const *inputs,
                                  const tutti_attr *attrs, tutti_tensor **ret_outputs);

/* Runs the sample twice: the outputs have the types that the shape rule says, both runs give the
 * same bits, and no input has changed. */
tutti_status tutti__run_check(const tutti_sample *sample);

/* Cuts the sample in every way that its split rule allows into 2 and into 3 pieces, runs the pieces
 * by the reference kernel, combines and compares with the whole. Ways along dimensions smaller than
 * the number of pieces are passed over. *ret_cuts (optional) counts the cuts that were tried. */
tutti_status tutti__split_check(const tutti_sample *sample, int *ret_cuts);

/* Compares the operator's gradient rule with finite differences; with orders 2 or more the
 * gradients of gradients too. Nothing to do for operators without a rule, and for those that update
 * variables. */
tutti_status tutti__gradient_check(const tutti_sample *sample, int orders);

/* Whether two tensors are equal within `tolerance` * (1 + |value|), NaN equal to NaN, integers and
 * strings exactly. Otherwise a message that begins with `what` and names the first element that
 * differs. A negative tolerance takes the one that suits the element type. */
tutti_status tutti__tensor_near(tutti_tensor *actual, tutti_tensor *expected, double tolerance,
                                const char *what);

#endif
