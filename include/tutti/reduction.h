/* reduction.h: how values of several devices or ranks become one. */
#ifndef TUTTI_REDUCTION_H
#define TUTTI_REDUCTION_H

typedef enum tutti_reduction {
    TUTTI_SUM,
    TUTTI_MEAN,
    TUTTI_MIN,
    TUTTI_MAX,
    TUTTI_PROD
} tutti_reduction;

#endif
