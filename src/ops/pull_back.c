/* pull_back.c: see pull_back.h. */
#include "ops/pull_back.h"

#include "graph/autodiff.h"
#include "ops/control/control.h"

/* What one call holds: the sub-graph's parameters are the arguments, then the gradients that there
 * are of results. */
typedef struct pulling {
    const tutti_pull_back *of;
    tutti_graph *body;
    int count, ys, xs;
    tutti_sym *given; /* what the parameters stand for */
    tutti_sym *params, *results, *y, *x, *grads;
    tutti_type *types;
    tutti_arena arena;
} pulling;

static tutti_status pull_back_take(pulling *p)
{
    const tutti_pull_back *of = p->of;
    size_t args = (size_t)of->arg_count, results = (size_t)of->result_count;
    p->given = tutti__arena_array(&p->arena, args + results, sizeof *p->given);
    p->params = tutti__arena_array(&p->arena, args + results, sizeof *p->params);
    p->types = tutti__arena_array(&p->arena, args + results, sizeof *p->types);
    p->results = tutti__arena_array(&p->arena, 2 * results, sizeof *p->results);
    p->x = tutti__arena_array(&p->arena, 2 * args, sizeof *p->x);
    if (!p->given || !p->params || !p->types || !p->results || !p->x)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for gradients");
    p->y = p->results + results;
    p->grads = p->x + args;
    memcpy(p->given, of->args, args * sizeof *p->given);
    p->count = of->arg_count;
    for (size_t i = 0; i < results; i++)
        if (tutti_sym_ok(of->result_grads[i]))
            p->given[p->count++] = of->result_grads[i];
    for (int i = 0; i < p->count; i++)
        p->types[i] = tutti_sym_type(p->given[i]);
    return TUTTI_OK;
}

static tutti_status differentiate(pulling *p)
{
    const tutti_pull_back *of = p->of;
    TUTTI_TRY(tutti__subgraph_create(p->count, p->types, &p->body, p->params));
    of->fn(p->body, of->arg_count, p->params, p->results, of->context);
    TUTTI_TRY(tutti_graph_check(p->body));
    for (int i = 0; i < of->result_count; i++)
        if (tutti_sym_ok(of->result_grads[i]))
            p->y[p->ys++] = p->results[i];
    for (int i = 0; i < of->arg_count; i++)
        if (of->wanted[i])
            p->x[p->xs++] = p->params[i];
    return tutti__gradients(p->body, p->ys, p->y, p->params + of->arg_count, p->xs, p->x, p->grads,
                            NULL);
}

/* Those that there are, inlined. */
static tutti_status give(pulling *p, tutti_graph *graph, tutti_sym *ret_grads)
{
    tutti_sym *made = p->x; /* its work is done */
    int count = 0, x = 0;
    for (int i = 0; i < p->xs; i++)
        if (tutti_sym_ok(p->grads[i])) {
            TUTTI_TRY(tutti__subgraph_results(p->body, 1, &p->grads[i]));
            count++;
        }
    if (count > 0)
        TUTTI_TRY(tutti__inline(graph, p->body, p->count, p->given, made));
    count = 0;
    for (int i = 0; i < p->of->arg_count; i++)
        if (p->of->wanted[i] && tutti_sym_ok(p->grads[x++]))
            ret_grads[i] = made[count++];
    return tutti_graph_check(graph);
}

tutti_status tutti__pull_back(tutti_graph *graph, const tutti_pull_back *of, tutti_sym *ret_grads)
{
    pulling p = {.of = of};
    for (int i = 0; i < of->arg_count; i++)
        ret_grads[i] = TUTTI_NO_SYM;
    tutti_status status = pull_back_take(&p);
    if (status == TUTTI_OK && p.count > of->arg_count) {
        status = differentiate(&p);
        if (status == TUTTI_OK)
            status = give(&p, graph, ret_grads);
    }
    tutti_graph_destroy(p.body);
    tutti__arena_free(&p.arena);
    return status;
}

typedef struct backward {
    tutti_gradient_call *node;
    tutti_body_fn *forward;
    int output_count;
    const int *of;
} backward;

/* The backward operator itself: forward's arguments, the result's gradient. */
static void build_backward(tutti_graph *body, int count, const tutti_sym *args,
                           tutti_sym *ret_results, void *context)
{
    const backward *b = context;
    bool wanted[TUTTI_SPLIT_SLOTS] = {0};
    tutti_sym grads[TUTTI_SPLIT_SLOTS];
    for (int k = 0; k < b->output_count; k++)
        wanted[b->of[k]] = true;
    tutti_pull_back forward = {.fn = b->forward,
                               .context = b->node,
                               .arg_count = count - 1,
                               .result_count = 1,
                               .args = args,
                               .result_grads = &args[count - 1],
                               .wanted = wanted};
    tutti_status status = tutti__pull_back(body, &forward, grads);
    if (status != TUTTI_OK)
        tutti__poison(body, status, "%s", tutti_error_message());
    for (int k = 0; status == TUTTI_OK && k < b->output_count; k++) {
        tutti_sym grad = grads[b->of[k]];
        ret_results[k] = tutti_sym_ok(grad) ? grad : tutti_zeros_like(args[b->of[k]]);
    }
}

tutti_status tutti__backward_gradient(tutti_gradient_call *node, tutti_body_fn *forward,
                                      int output_count, const int *of)
{
    backward b = {node, forward, output_count, of};
    tutti_pull_back all = {.fn = build_backward,
                           .context = &b,
                           .arg_count = node->input_count,
                           .result_count = output_count,
                           .args = node->inputs,
                           .result_grads = node->output_grads,
                           .wanted = node->wanted};
    return tutti__pull_back(node->graph, &all, node->input_grads);
}
