/* step.c: building the training step and the test step into the work graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/inspect.h"
#include "nn/model/model_strategy.h"
#include "nn/optimizers/optimizer.h"
#include "nn/training/accumulate.h"
#include "nn/training/loss_scale.h"
#include "nn/training/trainer.h"
#include "ops/state/state.h"

/* What a form is built from. */
typedef struct making {
    tutti_model *model;
    tutti_step_function *function;
    int inputs, targets;
    const tutti_type *types; /* of what is fed */
    tutti_sym x[64], outputs[64];
    tutti_sym truth[64], weights[64]; /* by goal */
    tutti_sym batch;                  /* number of examples, f32 scalar */
    tutti_sym share;                  /* what a batch weighs among those of one step */
    bool sums;                        /* every loss is a sum over the batch, not a mean */
    tutti_sym total;                  /* the loss that is differentiated */
} making;

static tutti_status make_feeds(making *m, int count)
{
    tutti_model *model = m->model;
    for (int i = 0; i < count; i++) {
        char name[64];
        tutti_type type = m->types[i];
        snprintf(name, sizeof name, "%s/feed", m->function->training ? "training" : "testing");
        tutti_sym feed = tutti_split_batch((tutti_placeholder_named)(model->graph, name, type));
        if (!feed.node || !TUTTI_VEC_PUSH(&m->function->feeds, feed))
            return tutti_graph_check(model->graph) != TUTTI_OK
                       ? tutti_graph_check(model->graph)
                       : tutti_fail(TUTTI_NO_MEMORY, "no memory for a step");
        if (i < m->inputs)
            m->x[i] = feed;
        else if (i < m->inputs + m->targets)
            m->truth[i - m->inputs] = feed;
        else
            m->weights[i - m->inputs - m->targets] = feed;
    }
    return TUTTI_OK;
}

/* Class weights as weights of examples: by class number, or by the one-hot target. */
static tutti_sym class_weights(making *m, int goal)
{
    tutti_trainer *trainer = m->model->trainer;
    tutti_sym truth = m->truth[goal];
    tutti_graph *graph = m->model->graph;
    tutti_sym by_class = tutti_constant(graph, trainer->class_weights), weights;
    tutti_type type = tutti_sym_type(truth);
    if (type.rank > 1 && type.dims[type.rank - 1] > 1 && tutti_dtype_is_float(type.dtype))
        truth = tutti_argmax(truth, -1);
    else {
        if (type.rank > 1 && type.dims[type.rank - 1] == 1)
            truth = tutti_squeeze(truth, -1);
        if (!tutti_dtype_is_int(type.dtype))
            truth = tutti_cast(truth, TUTTI_I64);
    }
    TUTTI_WITH_NAME(graph, "class_weights") /* its message says which class has none */
    {
        weights = tutti_gather(by_class, truth, 0);
    }
    return weights;
}

/* An output's mask as weights, f32 [batch, time]; TUTTI_NO_SYM without one. */
static tutti_sym output_mask(const making *m, int output)
{
    tutti_sym mask = tutti__mask_of(&m->function->building, m->outputs[output]);
    return mask.node ? tutti_cast(mask, TUTTI_F32) : mask;
}

/* Both weights, where there are both; the one of lower rank holds for all of the other's last axes.
 */
static tutti_sym join_weights(tutti_sym a, tutti_sym b)
{
    if (!a.node || !b.node)
        return a.node ? a : b;
    a = tutti__weights_like(a, b);
    return tutti_mul(a, tutti__weights_like(b, a));
}

/* The mask in a mean: what is left out does not count, so that the rest weighs total / left. */
static tutti_sym mask_in_mean(tutti_sym mask)
{
    tutti_sym total = tutti_cast(tutti_size(mask), TUTTI_F32);
    tutti_sym left = tutti_maximum(tutti_sum(mask), 1);
    return tutti_mul(mask, tutti_div(total, left));
}

/* Weights of a goal's losses: of examples, of classes, of the mask. */
static tutti_sym goal_weights(making *m, int index)
{
    const tutti_goal *goal = &m->model->trainer->goals.data[index];
    tutti_sym weights = m->weights[index];
    if (weights.node && tutti_sym_type(weights).dtype != TUTTI_F32)
        weights = tutti_cast(weights, TUTTI_F32);
    if (m->model->trainer->class_weights && m->function->training) {
        tutti_sym classes = class_weights(m, index);
        weights = join_weights(weights, classes);
    }
    tutti_sym mask = output_mask(m, goal->output);
    if (mask.node && goal->loss.reduction == TUTTI_LOSS_MEAN)
        mask = mask_in_mean(mask);
    return join_weights(weights, mask);
}

/* `share`: what the batch weighs among those of an epoch. */
static void track_loss(making *m, int index, tutti_sym value, tutti_sym share)
{
    if (!value.node)
        return;
    tutti_sym adds[TUTTI_METRIC_SUMS] = {tutti_mul(value, share), share};
    tutti__track_build(m->model, m->function, index, adds);
}

/* Shows what layers add under a name. Numbers of examples weigh as many as they are in the mean of
 * an epoch, scalars as their batch. */
static void track_added(making *m, const char *name, int before, bool loss, tutti_sym value,
                        tutti_sym share)
{
    int item;
    if (tutti__track_added(m->model, name, before, loss, &item) != TUTTI_OK)
        tutti__poison(m->model->graph, TUTTI_INVALID, "%s", tutti_error_message());
    else
        track_loss(m, item, value, share);
}

static void build_added(making *m, size_t index, tutti_sym *total)
{
    const tutti_building *building = &m->function->building;
    const tutti_added *added = &building->added.data[index];
    bool sums = added->loss && m->sums, scalar = tutti_sym_type(added->value).rank == 0;
    tutti_sym value = tutti__added_value(added, sums);
    if (added->loss)
        *total = tutti_add(*total, value);
    if (added->name[0] && tutti_graph_check(m->model->graph) == TUTTI_OK)
        track_added(m, added->name, tutti__added_before(building, index), added->loss, value,
                    scalar || sums ? m->batch : tutti_cast(tutti_size(added->value), TUTTI_F32));
}

/* A single output's loss is shown apart where layers add losses that are. */
static void track_alone(making *m)
{
    const tutti_trainer *trainer = m->model->trainer;
    const tutti_building *building = &m->function->building;
    char name[300];
    bool shown = false;
    for (size_t i = 0; i < building->added.count; i++)
        shown = shown || (building->added.data[i].loss && building->added.data[i].name[0]);
    snprintf(name, sizeof name, "%s_loss",
             m->model->outputs.data[trainer->goals.data[0].output].name);
    if (shown && trainer->goals.count == 1 && m->total.node)
        track_added(m, name, 0, true, m->total, m->share);
}

/* The terms and metrics that layers add. Where losses are sums, a scalar, as a regularizer's,
 * belongs to all batches of a step together. */
static void build_all_added(making *m)
{
    const tutti_building *building = &m->function->building;
    tutti_sym plain = m->total;
    track_alone(m);
    for (int scalars = 0; scalars < 2; scalars++) {
        plain = m->total;
        for (size_t i = 0; i < building->added.count; i++)
            if ((tutti_sym_type(building->added.data[i].value).rank == 0) == scalars)
                build_added(m, i, &m->total);
    }
    track_loss(m, 0, m->total, m->share);
    if (m->sums && m->model->trainer->accumulate > 1 && m->total.node != plain.node)
        m->total = tutti_add(
            plain, tutti_mul(tutti_sub(m->total, plain), 1.0 / m->model->trainer->accumulate));
}

static void build_losses(making *m)
{
    tutti_trainer *trainer = m->model->trainer;
    int shown = 1; /* item 0 is the total */
    for (size_t i = 0; i < trainer->goals.count; i++) {
        const tutti_goal *goal = &trainer->goals.data[i];
        tutti_sym guess = m->outputs[goal->output];
        tutti_loss_parts parts =
            tutti__loss_parts(&goal->loss, m->truth[i], guess, goal_weights(m, (int)i));
        if (!parts.value.node)
            return;
        bool weighs = goal->loss.reduction == TUTTI_LOSS_WEIGHTED_MEAN;
        if (trainer->goals.count > 1)
            track_loss(m, shown++, parts.value, weighs ? parts.count : m->batch);
        tutti_sym term = goal->weight == 1 ? parts.value : tutti_mul(parts.value, goal->weight);
        m->total = m->total.node ? tutti_add(m->total, term) : term;
        m->sums = (i == 0 || m->sums) && goal->loss.reduction == TUTTI_LOSS_SUM;
        if (trainer->goals.count == 1 && weighs)
            m->share = parts.count;
    }
    build_all_added(m);
}

static void build_metrics(making *m)
{
    tutti_trainer *trainer = m->model->trainer;
    for (size_t i = 0; i < trainer->tracked.count; i++) {
        const tutti_tracked *item = &trainer->tracked.data[i];
        if (!item->metric.def)
            continue;
        int goal = -1;
        for (size_t k = 0; k < trainer->goals.count; k++)
            if (trainer->goals.data[k].output == item->output)
                goal = (int)k;
        tutti_metric_build build = {.metric = &item->metric,
                                    .guess = tutti_stop_gradient(m->outputs[item->output])};
        if (goal >= 0) {
            build.truth = m->truth[goal];
            build.weights = join_weights(m->weights[goal], output_mask(m, item->output));
        }
        if (!build.truth.node || !build.guess.node) {
            tutti__poison(m->model->graph, TUTTI_INVALID,
                          "metric '%s' is of an output without a loss: it has no targets",
                          item->name);
            return;
        }
        item->metric.def->build(&build);
        if (tutti_graph_check(m->model->graph) != TUTTI_OK)
            return;
        tutti__track_build(m->model, m->function, (int)i, build.adds);
    }
}

static int trainable(tutti_model *model, tutti_sym *ret)
{
    int count = 0;
    for (size_t i = 0; i < model->weight_end; i++) {
        tutti_node *node = model->graph->nodes.data[i];
        if (!tutti__is(node, "variable") || !tutti__int(node, "trainable"))
            continue;
        if (ret)
            ret[count] = tutti__sym(node, 0);
        count++;
    }
    return count;
}

/* Weights under a constraint are brought back after the update. */
static void constrain(making *m, tutti_sym update)
{
    for (size_t i = 0; i < m->function->building.constraints.count; i++) {
        const tutti_constrained *weight = &m->function->building.constraints.data[i];
        if (tutti__optimizer_freezes(&m->model->trainer->optimizer, weight->variable.node))
            continue;
        tutti_sym assign = tutti__constrain(weight, update);
        if (assign.node && !TUTTI_VEC_PUSH(&m->function->building.updates, assign))
            tutti__poison(m->model->graph, TUTTI_NO_MEMORY, "no memory for a step");
    }
}

static void add_update(making *m, tutti_sym update)
{
    if (update.node && !TUTTI_VEC_PUSH(&m->function->building.updates, update))
        tutti__poison(m->model->graph, TUTTI_NO_MEMORY, "no memory for a step");
}

/* Several batches make one step. Gradients are gathered as sums over examples (or their weights,
 * where these are what the loss is divided by), and so are the examples, so that batches of
 * different sizes weigh what they should. Losses that are sums are added up as they are. */
static void accumulate(making *m, int count, const tutti_sym *variables, tutti_grad *grads)
{
    tutti_graph *graph = m->model->graph;
    size_t shared = m->function->building.updates.count; /* metrics and the like: in both targets */
    tutti_hidden_scopes hidden = tutti__scopes_hide(graph);
    tutti_sym gathered =
        tutti_get_variable(graph, "training/gathered", tutti_zeros(), .not_trainable = true);
    tutti__scopes_show(graph, hidden);
    add_update(m, tutti__accumulate_add(count, variables, grads));
    add_update(m, tutti_assign_add(gathered, m->share));
    m->function->gather = (tutti_group)(graph, NULL, (int)m->function->building.updates.count,
                                        m->function->building.updates.data);
    m->function->building.updates.count = shared;
    add_update(m, tutti__accumulate_take(count, variables, grads, 1, grads));
    tutti_sym examples = tutti_maximum(tutti_add(tutti_read(gathered), m->share),
                                       tutti_scalar(graph, TUTTI_F32, 1e-30));
    add_update(m, tutti_assign(gathered, tutti_scalar(graph, TUTTI_F32, 0)));
    for (int i = 0; i < count && !m->sums; i++)
        if (tutti_grad_ok(grads[i]))
            grads[i].value = tutti_div(
                grads[i].value, tutti_sym_type(grads[i].value).dtype == TUTTI_F32
                                    ? examples
                                    : tutti_cast(examples, tutti_sym_type(grads[i].value).dtype));
}

/* From the loss to the updates: scaled in 16-bit floats, gathered over batches, applied. */
static tutti_sym descend(making *m, int count, const tutti_sym *variables, tutti_grad *grads)
{
    tutti_model *model = m->model;
    tutti_updates updates = {.optimizer = &model->trainer->optimizer,
                             .count = count,
                             .variables = variables,
                             .grads = grads};
    bool scaled = model->compute == TUTTI_F16, several = model->trainer->accumulate > 1;
    tutti_loss_scale scale = {0};
    tutti_sym loss = several && !m->sums ? tutti_mul(m->total, m->share) : m->total;
    if (scaled) {
        scale = tutti__loss_scale_open(model->graph);
        loss = tutti__loss_scale_up(&scale, loss);
    }
    (tutti_gradients)(loss, count, variables, grads);
    if (tutti_graph_check(model->graph) != TUTTI_OK)
        return TUTTI_NO_SYM;
    if (several)
        accumulate(m, count, variables, grads);
    if (scaled) { /* of the sum: one batch that is not finite spoils the whole step */
        add_update(m, tutti__loss_scale_build(&scale, count, grads, grads));
        updates.apply = scale.finite;
    }
    return tutti__optimizer_apply(&updates);
}

static tutti_status build_descent(making *m)
{
    tutti_model *model = m->model;
    int count = trainable(model, NULL);
    if (count == 0)
        return tutti_fail(TUTTI_INVALID, "model '%s' has no weights to train", model->name);
    tutti_sym *variables = calloc((size_t)count, sizeof *variables);
    tutti_grad *grads = calloc((size_t)count, sizeof *grads);
    if (!variables || !grads) {
        free(variables);
        free(grads);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a step");
    }
    trainable(model, variables);
    int moving = tutti__optimizer_leave_frozen(&model->trainer->optimizer, count, variables);
    count = moving > 0 ? moving : trainable(model, variables); /* none: the optimizer says so */
    tutti_sym update = descend(m, count, variables, grads);
    free(variables);
    free(grads);
    TUTTI_TRY(tutti_graph_check(model->graph));
    add_update(m, update);
    constrain(m, update);
    return tutti_graph_check(model->graph);
}

static tutti_status build_function(making *m, int count)
{
    tutti_model *model = m->model;
    tutti_step_function *function = m->function;
    TUTTI_TRY(make_feeds(m, count));
    function->building = tutti__model_building(model, function->training);
    model->graph->building = &function->building;
    size_t marks = tutti__inspect_count(model->graph);
    tutti_status status = tutti__model_instantiate(model, model->graph, m->x, m->outputs);
    model->graph->building = NULL;
    TUTTI_TRY(status);
    if (!function->training)
        TUTTI_TRY(tutti__inspect_prefix(model->graph, marks, "val_"));
    if (model->trainer
            ->file) /* mistakes of losses and metrics are compile's, not the last layer's */
        tutti_here(model->trainer->file, model->trainer->line);
    m->batch = m->share = tutti_cast(tutti_size(m->x[0], 0), TUTTI_F32);
    build_losses(m);
    TUTTI_TRY(tutti_graph_check(model->graph));
    build_metrics(m);
    TUTTI_TRY(tutti_graph_check(model->graph));
    if (function->training)
        TUTTI_TRY(build_descent(m));
    function->target = (tutti_group)(model->graph, NULL, (int)function->building.updates.count,
                                     function->building.updates.data);
    TUTTI_TRY(tutti_graph_check(model->graph));
    function->built = true;
    TUTTI_TRY(tutti__model_initialize(model));
    if (!model->trainer->reset_later[!function->training])
        return TUTTI_OK;
    model->trainer->reset_later[!function->training] = false;
    return tutti__track_reset(model, function->training);
}

static tutti_status form_for(tutti_model *model, tutti_step_function *function, int count,
                             tutti_tensor *const *tensors)
{
    int inputs = (int)model->inputs.count, targets = (int)model->trainer->goals.count;
    tutti_type types[3 * 64];
    bool anew, training = function->training, weighted = function->weighted;
    TUTTI_TRY(tutti__model_widen(model, inputs, tensors));
    TUTTI_TRY(tutti__step_function_types(model, function, count, tensors, types, &anew));
    if (!anew)
        return TUTTI_OK;
    making *m = calloc(1, sizeof *m);
    if (!m)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a step");
    tutti__step_function_drop(function);
    function->training = training;
    function->weighted = weighted;
    *m = (making){
        .model = model, .function = function, .inputs = inputs, .targets = targets, .types = types};
    tutti_status status = build_function(m, count);
    free(m);
    return status;
}

tutti_status tutti__step_function_for(tutti_model *model, bool training, int count,
                                      tutti_tensor *const *tensors, tutti_step_function **ret)
{
    TUTTI_TRY(tutti__need_trainer(model));
    TUTTI_TRY(tutti__model_fail(model, tutti__trainable_refresh(model)));
    tutti_trainer *trainer = model->trainer;
    int inputs = (int)model->inputs.count, targets = (int)trainer->goals.count;
    bool weighted = count == inputs + 2 * targets;
    if (count != inputs + targets && !weighted)
        return tutti__model_fail(
            model, tutti_fail(TUTTI_INVALID,
                              "model '%s' takes %d inputs and %d targets (and as many weights), "
                              "the data has %d components",
                              model->name, inputs, targets, count));
    tutti_step_function *function = &trainer->functions[(training ? 0 : 2) + weighted];
    function->training = training;
    function->weighted = weighted;
    TUTTI_TRY(tutti__model_fail(model, form_for(model, function, count, tensors)));
    *ret = function;
    return TUTTI_OK;
}

tutti_status tutti__step_function_run(tutti_model *model, tutti_step_function *function,
                                      int64_t batch, bool own, int count,
                                      tutti_tensor *const *tensors)
{
    tutti_feed feeds[3 * 64];
    tutti_trainer *trainer = model->trainer;
    tutti_sym target = function->target;
    tutti_rows rows;
    TUTTI_TRY(tutti__check_class_numbers(model, (int)model->inputs.count, count, tensors));
    TUTTI_TRY(tutti__rows_take(model, batch, count, tensors, &rows));
    for (int i = 0; i < count; i++)
        feeds[i] = (tutti_feed){function->feeds.data[i], rows.tensors[i]};
    if (function->training) {
        if (trainer->optimizer.schedule.def) /* as the step itself will compute it */
            trainer->rate = tutti__optimizer_rate(&trainer->optimizer, trainer->updates);
        bool last = ++trainer->gathered >= trainer->accumulate;
        target = last ? function->target : function->gather;
        trainer->gathered = last ? 0 : trainer->gathered;
        trainer->updates += last;
    }
    tutti_status status = tutti_run(model->session, .feed = {count, feeds}, .target = target,
                                    .batch = rows.batch, .own_rows = own);
    tutti__rows_release(&rows);
    return status;
}
