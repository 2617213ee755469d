/* testing.h: how tests of passes show a graph and compare what it computes before and after.
 *
 * Graphs are built with the public functions; parameters are the inputs and tutti__graph_result
 * says what comes out. The text of a graph is what it returns as an expression:
 *
 *     t0 = exp(p0)
 *     return add(t0, mul(t0, 0.5)), sum(p1){axes=[1]}
 *     run assign_add(v0, 1)
 *
 * p0 is parameter 0, v0 the first variable, 0.5 a scalar constant; t0, t1, … are used more than
 * once. */
#ifndef TUTTI_PASSES_TESTING_H
#define TUTTI_PASSES_TESTING_H

#include "base/test.h"
#include "ops/build.h"
#include "passes/pass.h"

/* Valid until the next call. */
const char *tutti__test_text(const tutti_graph *graph);

/* The graph has text `before`, the pass runs, the graph verifies and has text `after`, and results
 * are equal as == says (a NaN equals a NaN) on drawn inputs. NULL texts are not compared. Returns
 * the number of changes. */
int tutti__test_pass(const tutti_pass *pass, const tutti_pass_context *context, tutti_graph *graph,
                     const char *before, const char *after);
/* The same for any number of passes; results may differ by `tolerance` * (1 + |value|). */
int tutti__test_passes(int count, const tutti_pass *const *passes,
                       const tutti_pass_context *context, tutti_graph *graph, const char *before,
                       const char *after, double tolerance);

/* Runs one pass and verifies the graph; the number of changes. */
int tutti__test_rewrite(const tutti_pass *pass, const tutti_pass_context *context,
                        tutti_graph *graph);
/* What passes over a piece are told for a device that runs the CPU's kernels, and for one that
 * compiles whole graphs. */
const tutti_pass_context *tutti__test_on_cpu(void);
const tutti_pass_context *tutti__test_on_whole(void);

/* New graph; parameter `index`; a result. */
tutti_graph *tutti__test_graph(void);
tutti_sym tutti__test_input(tutti_graph *graph, int index, tutti_type type);
void tutti__test_result(tutti_sym sym);

/* A random graph of element-wise operators on shapes that broadcast, with constants 0, 1 and
 * others, a function of the seed. */
tutti_graph *tutti__test_random_graph(uint64_t seed, int nodes);

#endif
