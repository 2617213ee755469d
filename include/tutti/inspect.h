/* inspect.h: values of a step by name, without rewriting its loop.
 *
 *     h = tutti_inspect(tutti_matmul(q, k), "scores");        in a layer, a model or a loop
 *     ./train --inspect scores --inspect-every 10             prints it; "*" prints all there is
 *
 *     tutti_inspect_names("scores", 1);                       the same from the program,
 *     tutti_fit(m, data);
 *     tutti_model_inspected(m, "scores", &value);             and takes the value looked at last
 *
 * Patterns are a shell's ('*', '?', several with commas between). Beside marked values they choose
 * outputs of layers by the layers' names ("body/dense_1" in a model inside another). In steps of
 * tutti_evaluate and of fit's validation all names begin with "val_".
 *
 * A step gives chosen values as results of their own; while no pattern is set, steps are as if
 * nothing was marked. A line has the name, the step, the shape, least, mean and largest of the
 * finite elements, the number of others, and the first elements. Values inside the bodies of
 * tutti_while and tutti_cond are not seen. Under a strategy they are those of the
 * whole batch, as all that is fetched; rank 0 prints. */
#ifndef TUTTI_INSPECT_H
#define TUTTI_INSPECT_H

#include "tutti/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a value by a name and returns it: the same symbol, so that nothing else changes. Marks of
 * one name in one step are "name", "name_1", …. In the JSON of a functional model marks are not
 * kept, in that of layers they are made anew by the layers. */
TUTTI_API tutti_sym tutti_inspect(tutti_sym x, const char *name);
#define tutti_inspect(...) TUTTI_AT(tutti_inspect(__VA_ARGS__))

/* As --inspect PATTERNS and --inspect-every N do: the first step is looked at and then each N-th;
 * every 0: 100. They are printed by the sink of tutti_log_install, else on standard error, under
 * --quiet not at all. NULL or "" ends it. Set it before models are built: layers are marked then.
 */
TUTTI_API tutti_status tutti_inspect_names(const char *patterns, int64_t every);

/* The value that was looked at last under the name, in runs of the graph (tutti_eager_graph: of a
 * tape); a new reference, the caller's to release. TUTTI_NOT_FOUND lists what there is. */
TUTTI_API tutti_status tutti_inspected(tutti_graph *graph, const char *name,
                                       tutti_tensor **ret_value);

#ifdef __cplusplus
}
#endif
#endif
