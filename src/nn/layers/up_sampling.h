/* up_sampling.h: larger by interpolation; what the layers of one, two and three axes share. */
#ifndef TUTTI_NN_LAYERS_UP_SAMPLING_H
#define TUTTI_NN_LAYERS_UP_SAMPLING_H

#include "nn/layers/common.h"

/* The names of the ways, all in one place: nearest, linear, cubic. */
typedef struct tutti_interpolations {
    const char *linear, *cubic;
} tutti_interpolations;

/* Input 0 with its `count` axes between batch and channels `times` as large. Elements stand at the
 * centres of steps or pixels. The cubic polynomial is that of Keras: Keys's with -1/2, and nothing
 * beyond the ends. */
static inline tutti_sym tutti__layer_larger(tutti_layer_call *call, int count, const int64_t *times,
                                            const char *how, const tutti_interpolations *names)
{
    double scales[3] = {1, 1, 1};
    for (int i = 0; i < count; i++)
        scales[i] = (double)times[i];
    if (how == NULL || strcmp(how, "nearest") == 0)
        return tutti_resize(call->inputs[0], .scales = {scales[0], scales[1], scales[2]},
                            .coordinates = "asymmetric", .nearest_mode = "floor");
    bool cubic = strcmp(how, names->cubic) == 0;
    if (!cubic && strcmp(how, names->linear) != 0)
        return tutti_layer_fail(call, "interpolation is \"nearest\", \"%s\" or \"%s\", not '%s'",
                                names->linear, names->cubic, how);
    return tutti_resize(call->inputs[0], .scales = {scales[0], scales[1], scales[2]},
                        .mode = cubic ? "cubic" : "linear", .cubic_coefficient = -0.5,
                        .exclude_outside = cubic);
}

#endif
