/* planned.c: what the values of a training step take: the step is compiled, not run.
 *
 * Targets are not known before there is data, so the loss is a stand-in, the mean of the outputs'
 * squares; all that lies before it is the model's own: layers in training, gradients, optimizer. */
#include <stdlib.h>

#include "exec/plan/plan.h"
#include "nn/optimizers/optimizer.h"
#include "nn/training/forecast_model.h"
#include "nn/training/trainer.h"
#include "ops/build.h"

enum { MOST_INPUTS = 64 };

typedef struct sketch {
    tutti_model *model;
    tutti_graph *graph;
    tutti_building building;
    int inputs;
    tutti_type types[MOST_INPUTS];
    tutti_edge feeds[MOST_INPUTS];
    tutti_sym target;
} sketch;

static tutti_sym stand_in_loss(const sketch *s, const tutti_sym *outputs)
{
    tutti_sym loss = TUTTI_NO_SYM;
    for (size_t i = 0; i < s->model->outputs.count && i < MOST_INPUTS; i++) {
        tutti_dtype dtype = outputs[i].node ? tutti_sym_type(outputs[i]).dtype : TUTTI_NO_DTYPE;
        if (!tutti_dtype_is_float(dtype))
            continue;
        tutti_sym x = dtype == TUTTI_F32 ? outputs[i] : tutti_cast(outputs[i], TUTTI_F32);
        tutti_sym term = tutti_mean(tutti_square(x));
        loss = loss.node ? tutti_add(loss, term) : term;
    }
    for (size_t i = 0; loss.node && i < s->building.added.count; i++)
        if (s->building.added.data[i].loss)
            loss = tutti_add(loss, tutti__added_value(&s->building.added.data[i], false));
    return loss;
}

static int trainable(const tutti_graph *graph, size_t end, tutti_sym *ret)
{
    int count = 0;
    for (size_t i = 0; i < end; i++) {
        tutti_node *node = graph->nodes.data[i];
        if (!tutti__is(node, "variable") || !tutti__int(node, "trainable"))
            continue;
        if (ret)
            ret[count] = tutti__sym(node, 0);
        count++;
    }
    return count;
}

static tutti_status build_updates(sketch *s, tutti_sym loss)
{
    tutti_optimizer plain = tutti_sgd(0.01);
    size_t end = s->graph->nodes.count;
    int count = trainable(s->graph, end, NULL);
    if (!loss.node || count == 0)
        return tutti_fail(TUTTI_INVALID, "model '%s' has nothing to train", s->model->name);
    tutti_sym *variables = calloc((size_t)count, sizeof *variables);
    tutti_grad *grads = calloc((size_t)count, sizeof *grads);
    if (variables && grads) {
        const tutti_optimizer *optimizer =
            s->model->trainer ? &s->model->trainer->optimizer : &plain;
        trainable(s->graph, end, variables);
        int moving = tutti__optimizer_leave_frozen(optimizer, count, variables);
        count = moving > 0 ? moving : trainable(s->graph, end, variables);
        (tutti_gradients)(loss, count, variables, grads);
        tutti_updates updates = {
            .optimizer = optimizer, .count = count, .variables = variables, .grads = grads};
        tutti_sym update = tutti_graph_check(s->graph) == TUTTI_OK
                               ? tutti__optimizer_apply(&updates)
                               : TUTTI_NO_SYM;
        if (update.node && TUTTI_VEC_PUSH(&s->building.updates, update))
            s->target = (tutti_group)(s->graph, NULL, (int)s->building.updates.count,
                                      s->building.updates.data);
    }
    free(variables);
    free(grads);
    TUTTI_TRY(tutti_graph_check(s->graph));
    return s->target.node ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a summary");
}

static tutti_status planned_build(sketch *s, int64_t batch)
{
    tutti_sym inputs[MOST_INPUTS], outputs[MOST_INPUTS] = {TUTTI_NO_SYM};
    s->graph->building = &s->building;
    for (size_t i = 0; i < s->model->inputs.count && i < MOST_INPUTS; i++) {
        tutti_type *type = &s->types[s->inputs++];
        *type = s->model->inputs.data[i].type;
        for (int k = 0; k < type->rank; k++)
            type->dims[k] = k == 0 ? batch : type->dims[k] < 0 ? 1 : type->dims[k];
        inputs[i] = (tutti_placeholder)(s->graph, *type);
        s->feeds[i] = tutti__edge(inputs[i]);
    }
    TUTTI_TRY(tutti__model_instantiate(s->model, s->graph, inputs, outputs));
    s->graph->building = NULL;
    return build_updates(s, stand_in_loss(s, outputs));
}

/* The bytes that are planned with these options. */
static tutti_status plan_step(const sketch *s, bool keeps_all, tutti_planned *ret)
{
    tutti_engine_options options;
    tutti_engine *engine;
    tutti_plan *plan;
    TUTTI_TRY(tutti__engine_options_of(
        TUTTI_OPTIONS(tutti_session_options, .deterministic = s->model->deterministic,
                      .memory_limit = keeps_all ? 0 : s->model->memory_limit),
        &options));
    options.keeps_all = keeps_all;
    TUTTI_TRY(tutti__engine_create(&options, &engine));
    options.device = options.device ? options.device : "cpu:0";
    tutti_run_request ask = {.feed_count = s->inputs,
                             .feeds = s->feeds,
                             .target_count = 1,
                             .targets = (tutti_node *[]){s->target.node}};
    tutti_status status = tutti__plan_create(engine, &options, s->graph, &ask, s->types, &plan);
    if (status == TUTTI_OK) {
        *ret = (tutti_planned){.bytes = (double)plan->arena_bytes,
                               .bound = (double)plan->arena_bound,
                               .flops = plan->flops,
                               .recomputed = plan->recomputed_flops};
        tutti__plan_release(plan);
    }
    tutti__engine_destroy(engine);
    return status;
}

tutti_status tutti__model_planned(tutti_model *model, int64_t batch, tutti_planned *ret)
{
    sketch *s = calloc(1, sizeof *s);
    tutti_planned planned = {0}, kept;
    if (!s)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a summary");
    s->model = model;
    s->building = tutti__model_building(model, true);
    tutti_status status = tutti_graph_create(&s->graph);
    if (status == TUTTI_OK) {
        status = planned_build(s, batch);
        if (status == TUTTI_OK)
            status = plan_step(s, false, &planned);
        kept = planned;
        if (status == TUTTI_OK && planned.recomputed > 0)
            status = plan_step(s, true, &kept);
        s->graph->building = NULL;
        tutti_graph_destroy(s->graph);
    }
    tutti__building_free(&s->building);
    free(s);
    if (status == TUTTI_OK) {
        *ret = planned;
        ret->kept = kept.bytes;
    }
    return status;
}
