/* quantize_ranges.c: the products of a model that can be integers, and the ranges of their inputs.
 */
#include <math.h>
#include <stdlib.h>

#include "data/dataset.h"
#include "nn/quantize/quantize.h"

bool tutti__quantize_weight(tutti_edge edge, const tutti_node **ret_variable)
{
    const tutti_node *node = edge.node;
    while (tutti__is(node, "read") || tutti__is(node, "identity"))
        node = node->inputs[0].node;
    *ret_variable = node;
    return tutti__is(node, "variable");
}

/* Of the sum that makes one output: all but the last axis. */
static int64_t terms_of(const tutti_type *weight)
{
    return tutti_type_count(weight) / weight->dims[weight->rank - 1];
}

static bool quantize_ranges_fits(const tutti_quantizing *q, const tutti_node *node)
{
    const tutti_node *variable;
    bool matmul = tutti__is(node, "matmul");
    if (!matmul && !tutti__is(node, "conv2d"))
        return false;
    const tutti_type *x = tutti__edge_type(node->inputs[0]);
    const tutti_type *weight = tutti__edge_type(node->inputs[1]);
    if (x->dtype != TUTTI_F32 || weight->dtype != TUTTI_F32 || x->handle ||
        tutti_type_count(weight) < 1 || terms_of(weight) < q->least_terms ||
        !tutti__quantize_weight(node->inputs[1], &variable))
        return false;
    return !matmul || (weight->rank == 2 && !tutti__int(node, "transpose_a") &&
                       !tutti__int(node, "transpose_b"));
}

static bool is_fed(const tutti_model *model, const tutti_node *node)
{
    for (size_t i = 0; i < model->fed.count; i++)
        if (model->fed.data[i].node == node)
            return true;
    return false;
}

tutti_status tutti__quantize_find(tutti_quantizing *q)
{
    const tutti_graph *graph = q->model->graph;
    q->needed = calloc(graph->nodes.count + 1, sizeof *q->needed);
    if (!q->needed)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to quantise a model");
    for (size_t i = 0; i < q->model->answers.count; i++)
        q->needed[q->model->answers.data[i].node->id] = true;
    for (size_t n = graph->nodes.count; n-- > 0;) {
        const tutti_node *node = graph->nodes.data[n];
        for (int i = 0; q->needed[n] && !is_fed(q->model, node) && i < node->input_count; i++)
            q->needed[node->inputs[i].node->id] = true;
    }
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_quantized_node found = {.node = graph->nodes.data[n]};
        if (q->needed[n] && quantize_ranges_fits(q, found.node) &&
            !TUTTI_VEC_PUSH(&q->found, found))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory to quantise a model");
    }
    if (q->found.count == 0)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "model '%s' has no products or convolutions of f32 with weights of at "
                          "least %lld terms; only those can be quantised (.shallow: all)",
                          q->model->name, (long long)q->least_terms);
    return TUTTI_OK;
}

/* NaN and infinities have no place in a range. */
static void widen(tutti_quantized_node *node, const tutti_tensor *value)
{
    const float *x = tutti_tensor_data(value);
    int64_t count = tutti_tensor_count(value);
    for (int64_t i = 0; i < count; i++) {
        if (isfinite(x[i]) && x[i] < node->low)
            node->low = x[i];
        if (isfinite(x[i]) && x[i] > node->high)
            node->high = x[i];
    }
}

/* One run: what each product multiplies, as many at a time as there are slots. */
static tutti_status look(tutti_quantizing *q, const tutti_wiring *wiring,
                         const tutti_element *element)
{
    enum { SLOTS = 16 };
    tutti_feed feeds[64];
    for (int i = 0; i < wiring->inputs; i++)
        feeds[i] = (tutti_feed){q->model->fed.data[i], element->tensors[wiring->order[i]]};
    for (size_t first = 0; first < q->found.count; first += SLOTS) {
        tutti_fetch fetches[SLOTS];
        tutti_tensor *values[SLOTS] = {0};
        int count = 0;
        for (; count < SLOTS && first + (size_t)count < q->found.count; count++) {
            tutti_edge edge = q->found.data[first + (size_t)count].node->inputs[0];
            fetches[count] = (tutti_fetch){tutti__sym(edge.node, (int)edge.index), &values[count]};
        }
        TUTTI_TRY(tutti_run(q->model->session, .feed = {wiring->inputs, feeds},
                            .fetch = {count, fetches}));
        for (int i = 0; i < count; i++) {
            widen(&q->found.data[first + (size_t)i], values[i]);
            tutti_tensor_release(values[i]);
        }
    }
    return TUTTI_OK;
}

tutti_status tutti__quantize_calibrate(tutti_quantizing *q, tutti_dataset *data, int64_t batches)
{
    tutti_wiring wiring;
    TUTTI_TRY(tutti__model_meet(q->model, data, false, &wiring));
    TUTTI_TRY(tutti__quantize_find(q));
    tutti_iterator *iterator = tutti__iterate(data, 0);
    tutti_status status = iterator ? TUTTI_OK : tutti_job_check(q->model->job);
    int64_t seen = 0;
    for (; status == TUTTI_OK && (batches < 1 || seen < batches); seen++) {
        tutti_element element;
        status = tutti_next_element(iterator, &element);
        if (status != TUTTI_OK || element.count == 0)
            break;
        status = look(q, &wiring, &element);
        tutti_element_release(&element);
    }
    tutti_iterator_close(iterator);
    if (status == TUTTI_OK && seen == 0)
        status = tutti_fail(TUTTI_INVALID, "there is nothing to calibrate with: the data is empty");
    return status;
}
