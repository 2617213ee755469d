/* model_strategy.h: a model and its strategy. */
#ifndef TUTTI_NN_MODEL_MODEL_STRATEGY_H
#define TUTTI_NN_MODEL_MODEL_STRATEGY_H

#include "nn/model/model.h"
#include "parallel/consistency/processes.h"

/* The strategy in force, if any, is the model's from now on: it is noted until there is an engine,
 * which gets it else. INVALID where another one spreads it already. */
tutti_status tutti__model_meet_strategy(tutti_model *model);
/* Makes the model's engine, if there is none, with the strategy that it met first, else the job's.
 * As tutti__model_meet_strategy. */
tutti_status tutti__model_engine(tutti_model *model);
tutti_strategy *tutti__model_strategy(const tutti_model *model); /* or NULL */
/* Of a model under a pipeline whose layers are in no stage: cuts it, once (stages.c). `strategy`
 * may be NULL. */
tutti_status tutti__model_find_stages(tutti_model *model, const tutti_strategy *strategy);
/* Is this the process that prints and writes? */
bool tutti__model_speaks(const tutti_model *model);
/* Are there other processes? */
bool tutti__model_shares(const tutti_model *model);

/* All processes say what they are about to do, and it must be the same. */
tutti_status tutti__model_same(const tutti_model *model, int count, const char *const *texts);
/* The largest number that a process gives: all have to ask. */
tutti_status tutti__model_agree(const tutti_model *model, int mine, int *ret_most);
/* Whether both of a model's files can be written; makes their folder. */
tutti_status tutti__model_try_place(const char *path);
/* After a saving: of several processes the first one writes, and all go on when the file is there.
 * Within a fit only the first one comes here, and nobody waits. */
tutti_status tutti__model_saved(const tutti_model *model, tutti_status status);

/* What replicas hold of a variable each (.on_read), and gradients of batches that are no step yet,
 * are put together (tutti__engine_join), so that the first process can save them: between two
 * batches, by all processes. Within a fit it is the fit that does so, and not who saves. */
tutti_status tutti__model_join(const tutti_model *model);
/* And what compressed gradients left out is fetched (tutti__engine_gather_all). */
tutti_status tutti__model_gather(const tutti_model *model);
tutti_status tutti__model_join_to_save(const tutti_model *model);

/* Iterators opened between these give this process's rows only, where the pipeline can. */
tutti_status tutti__rows_begin(const tutti_model *model, tutti_dataset *data, bool evaluates);
/* Are there as many steps as the dataset has elements? Not where processes read apart. */
bool tutti__rows_counted(const tutti_model *model, const tutti_dataset *data, bool evaluates);
void tutti__rows_end(tutti_dataset *data);

/* The rows of a batch that are this process's. */
typedef struct tutti_rows {
    int64_t batch; /* rows of the whole batch */
    int count;
    tutti_tensor *tensors[3 * 64];
} tutti_rows;
/* `batch` > 0: the tensors hold these rows already, of a batch of so many. */
tutti_status tutti__rows_take(const tutti_model *model, int64_t batch, int count,
                              tutti_tensor *const *tensors, tutti_rows *ret);
void tutti__rows_release(tutti_rows *rows);

#endif
