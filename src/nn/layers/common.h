/* common.h: what several layers share. */
#ifndef TUTTI_NN_LAYERS_COMMON_H
#define TUTTI_NN_LAYERS_COMMON_H

#include "nn/layer.h"
#include "ops/build.h"
#include "tutti/layers.h"

/* Element i of a pair of sizes: {3} means {3, 3}, nothing means the fallback. */
static inline int64_t tutti__pair(const int64_t pair[2], int i, int64_t fallback)
{
    if (pair[i] > 0)
        return pair[i];
    return pair[0] > 0 ? pair[0] : fallback;
}

static inline const char *tutti__text_or(const char *text, const char *fallback)
{
    return text ? text : fallback;
}

#endif
