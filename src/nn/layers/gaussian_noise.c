/* gaussian_noise.c: in training normal noise is added. */
#include "nn/layers/common.h"

static tutti_sym gaussian_noise_call(tutti_layer_call *call)
{
    const tutti_gaussian_noise_settings *s = call->settings;
    tutti_building *building = call->graph->building;
    tutti_sym x = tutti_identity(call->inputs[0]);
    if (!(s->stddev >= 0))
        return tutti_layer_fail(call, "the standard deviation is not negative, %g is", s->stddev);
    if (!call->training || s->stddev == 0)
        return x;
    return tutti_add(x, tutti_random_normal(call->graph, 0, s->stddev, tutti_sym_type(x), .like = x,
                                            .seed = s->seed ? s->seed : (int64_t)building->seed));
}

static const tutti_field fields[] = {
    TUTTI_NUMBER_FIELD(tutti_gaussian_noise_settings, stddev),
    TUTTI_INT_FIELD(tutti_gaussian_noise_settings, seed),
    {0},
};

const tutti_layer_kind tutti_layer_gaussian_noise = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "gaussian_noise",
    .doc = "gaussian_noise(stddev): in training y = x + normal(0, stddev), else y = x",
    .settings_size = sizeof(tutti_gaussian_noise_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = gaussian_noise_call,
};
