/* partial.c: values that are sums over the replicas: through linear operators, and in variables. */
#include "dist/walk.h"

/* A partial value plus a whole one of its shape: the first replica adds it. */
static bool adds_whole(const tutti_node *node)
{
    if (!tutti__is(node, "add") || node->input_count != 2 ||
        !tutti_type_equal(tutti__edge_type(node->inputs[0]), tutti__edge_type(node->inputs[1])))
        return false;
    tutti_form_kind a = tutti__form_made(node->inputs[0])->kind;
    tutti_form_kind b = tutti__form_made(node->inputs[1])->kind;
    return (a == TUTTI_FORM_PARTIAL && b == TUTTI_FORM_WHOLE) ||
           (a == TUTTI_FORM_WHOLE && b == TUTTI_FORM_PARTIAL);
}

/* Sums of parts go through linear operators as they are; only to types that hold as much. */
bool tutti__walk_passes_partial(const tutti_node *node)
{
    int partial = 0, numbers = 0;
    bool first = false;
    for (int i = 0; i < node->input_count; i++) {
        const tutti_form *form = tutti__form_made(node->inputs[i]);
        const tutti_type *type = tutti__edge_type(node->inputs[i]);
        if (form->kind == TUTTI_FORM_CUT || !tutti_dtype_is_float(type->dtype) ||
            !tutti_dtype_is_float(node->types[0].dtype) ||
            tutti_dtype_size(node->types[0].dtype) < tutti_dtype_size(type->dtype))
            return false;
        numbers++;
        partial += form->kind == TUTTI_FORM_PARTIAL;
        first = first || (i == 0 && form->kind == TUTTI_FORM_PARTIAL);
    }
    if (node->output_count != 1 || partial == 0)
        return false;
    if (adds_whole(node))
        return true;
    return ((node->op->flags & TUTTI_OP_LINEAR) && partial == numbers) ||
           ((node->op->flags & TUTTI_OP_LINEAR_EACH) && partial == 1) ||
           ((node->op->flags & TUTTI_OP_LINEAR_FIRST) && partial == 1 && first);
}

/* A variable whose value is the sum over the replicas: what is added stays where it is. */
static bool is_partial_variable(const tutti_walk *walk, const tutti_node *node)
{
    return walk->spread->shards == 0 && !walk->spread->central && tutti__is(node, "variable") &&
           tutti__int(node, "partial");
}

/* Reads and updates of such variables. False: the node is none. */
bool tutti__walk_takes_partial(const tutti_walk *walk, const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_TAKES_HANDLE) && node->input_count > 0 &&
           is_partial_variable(walk, node->inputs[0].node);
}

/* Adds what is partial; of what is whole the first replica's, others add or keep nothing. */
tutti_status tutti__walk_copy_accumulated(tutti_walk *walk, tutti_node *node, tutti_walked *mark)
{
    tutti_edge inputs[TUTTI_SPLIT_SLOTS];
    if (node->input_count > 2)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s '%s' updates a variable that is the sum over the "
                          "replicas",
                          node->op->name, node->name);
    inputs[0] = tutti__form_made(node->inputs[0])->edge;
    if (node->input_count == 2) {
        const tutti_form *form = tutti__form_made(node->inputs[1]);
        if (form->kind == TUTTI_FORM_PARTIAL)
            inputs[1] = form->edge;
        else
            TUTTI_TRY(tutti__form_as(walk, node->inputs[1], TUTTI_FORM_WHOLE, 0, &inputs[1]));
        if (form->kind != TUTTI_FORM_PARTIAL && walk->replica > 0) {
            tutti_node *zeros; /* what the others made is kept: they may have met for it */
            if (!TUTTI_VEC_PUSH(&walk->to->targets, inputs[1].node))
                return tutti__walk_no_memory();
            const tutti_type *type = tutti__edge_type(node->inputs[1]);
            tutti_attr attrs[] = {TUTTI_INT("dtype", type->dtype),
                                  TUTTI_INTS("dims", type->rank, type->dims)};
            TUTTI_TRY(tutti__walk_add(walk, node, "fill", 0, NULL, 2, attrs, &zeros));
            inputs[1] = (tutti_edge){zeros, 0};
        }
    }
    TUTTI_TRY(tutti__walk_copy(walk, node, inputs, NULL, &mark->node));
    for (int i = 0; i < node->output_count; i++)
        tutti__walk_made(mark, i, (tutti_form){TUTTI_FORM_PARTIAL, 0, {mark->node, (uint32_t)i}});
    return TUTTI_OK;
}

tutti_status tutti__walk_copy_partial(tutti_walk *walk, tutti_node *node, tutti_walked *mark)
{
    tutti_edge inputs[TUTTI_SPLIT_SLOTS];
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = tutti__form_made(node->inputs[i])->edge;
    if (adds_whole(node) && walk->replica > 0) {
        int own = tutti__form_made(node->inputs[0])->kind == TUTTI_FORM_PARTIAL ? 0 : 1;
        mark->node = inputs[own].node;
        tutti__walk_made(mark, 0, (tutti_form){TUTTI_FORM_PARTIAL, 0, inputs[own]});
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti__walk_copy(walk, node, inputs, NULL, &mark->node));
    tutti__walk_made(mark, 0, (tutti_form){TUTTI_FORM_PARTIAL, 0, {mark->node, 0}});
    return TUTTI_OK;
}
