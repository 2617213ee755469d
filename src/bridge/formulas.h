/* formulas.h: what both ONNX and TensorFlow have as one operator and we as several. Shapes may be
 * open; the results of functions have their limits at infinities, and gradients where they have
 * any. */
#ifndef TUTTI_BRIDGE_FORMULAS_H
#define TUTTI_BRIDGE_FORMULAS_H

#include "tutti/ops.h"

tutti_sym tutti__formula_asinh(tutti_sym x);
tutti_sym tutti__formula_acosh(tutti_sym x);

/* Of integers the quotient towards 0 and what it leaves; of floats the exact rest, with a's sign.
 * The lowest integer by -1 wraps round. */
tutti_sym tutti__formula_quotient(tutti_sym a, tutti_sym b);
tutti_sym tutti__formula_rest(tutti_sym a, tutti_sym b);

/* x as a matrix: the axes before `axis` are one, so are the others. */
tutti_sym tutti__formula_matrix(tutti_sym x, int axis);

/* x with updates at the places that rows [.., k] of indices name, each of x's slices after axis
 * k; of equal places the last stays, or they are combined (as tutti_scatter_elements). No index
 * may be negative or too large, which is an error when it runs. TUTTI_NO_SYM where k is not known
 * or too large. */
tutti_sym tutti__formula_scatter(tutti_sym x, tutti_sym rows, tutti_sym updates,
                                 const char *reduction);

#endif
