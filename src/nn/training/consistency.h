/* consistency.h: what processes that train one model compare before the first step. */
#ifndef TUTTI_NN_TRAINING_CONSISTENCY_H
#define TUTTI_NN_TRAINING_CONSISTENCY_H

#include "nn/model/model_strategy.h"
#include "nn/training/trainer.h"

/* A training that is about to begin. */
typedef struct tutti_training {
    tutti_dataset *data;
    int64_t batch;
    int first, last; /* epochs */
    int64_t steps;   /* of an epoch, or 0 */
} tutti_training;

/* INVALID on all of them where they were started to train different things: version, seed, model,
 * losses, data, epochs, optimizer. */
tutti_status tutti__training_consistent(const tutti_model *model, const tutti_training *training);
/* Weights that another process has otherwise than the first one become the first one's, which is
 * said: somebody loaded or set them in one process only. */
tutti_status tutti__weights_consistent(tutti_model *model);

#endif
