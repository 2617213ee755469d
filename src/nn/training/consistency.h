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

/* The checkpoint that a process found to go on from. */
typedef struct tutti_found {
    const char *place; /* where it looked: "at mnist.checkpoint.safetensors" */
    uint64_t identity; /* tutti__checkpoint_identity; 0: there was none */
    int64_t step;
} tutti_found;
/* INVALID on all processes where they did not all find the same: steps, slots and data of different
 * trainings would be mixed. All have to ask, before anything is written. */
tutti_status tutti__found_consistent(const tutti_strategy *strategy, const tutti_found *found);

#endif
