/* random_step.c: random numbers are a function of the step counter, a variable. A job that draws
 * advances it once, when it commits: one more target adds 1. */
#include <string.h>

#include "ops/random/random.h"
#include "passes/rewrite.h"

static bool is_counter(const tutti_node *node)
{
    if (!tutti__is(node, "variable"))
        return false;
    const char *shared = tutti__str(node, "shared_name");
    return strcmp(shared[0] != '\0' ? shared : node->name, TUTTI_RANDOM_COUNTER) == 0;
}

typedef struct usage {
    tutti_node *counter; /* a handle of it, or NULL */
    bool read, updated;
} usage;

static usage find_usage(const tutti_graph *graph)
{
    usage found = {0};
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        for (int i = 0; i < node->input_count; i++) {
            if (!is_counter(node->inputs[i].node))
                continue;
            bool updates = (node->op->flags & TUTTI_OP_UPDATES) != 0;
            found.counter = node->inputs[i].node;
            found.read = found.read || !updates;
            found.updated = found.updated || updates;
        }
    }
    return found;
}

const tutti_node *tutti__random_advanced(const tutti_graph *graph)
{
    usage found = find_usage(graph);
    return found.updated ? found.counter : NULL;
}

static tutti_status random_step_advance(tutti_rewrite *rewrite, tutti_node *counter)
{
    tutti_edge inputs[2] = {{counter, 0}}, step;
    TUTTI_TRY(tutti__rewrite_scalar(rewrite, counter, TUTTI_I64, 1, &inputs[1]));
    TUTTI_TRY(tutti__rewrite_add(rewrite, counter, "assign_add", 2, inputs, 0, NULL, &step));
    step.node->colocate = counter;
    if (!TUTTI_VEC_PUSH(&rewrite->graph->targets, step.node))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a target");
    rewrite->changes++;
    return TUTTI_OK;
}

static tutti_status random_step_run(tutti_graph *graph, const tutti_pass_context *context,
                                    int *ret_changes)
{
    usage found = find_usage(graph);
    tutti_rewrite rewrite;
    tutti_status status = tutti__rewrite_begin(&rewrite, graph, context);
    if (status == TUTTI_OK && found.read && !found.updated)
        status = random_step_advance(&rewrite, found.counter);
    return tutti__rewrite_end(&rewrite, status, ret_changes);
}

const tutti_pass tutti_pass_random_step = {
    .name = "random_step",
    .doc = "a job that draws random numbers advances the step counter at its commit",
    .stage = TUTTI_PASS_JOB,
    .order = 6,
    .run = random_step_run,
};
