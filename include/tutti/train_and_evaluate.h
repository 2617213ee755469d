/* train_and_evaluate.h: training and evaluation as two specs, in one process or in many.
 *
 *     tutti_train_and_evaluate(m, "run",
 *                              TUTTI_TRAIN_SPEC(.data = train, .max_steps = 20000,
 *                                               .save_steps = 500),
 *                              TUTTI_EVAL_SPEC(.data = test));
 *
 * The same program text runs as every task of the job (TF_CONFIG, tutti run, …): the chief and the
 * workers train, the chief saves checkpoints into the folder, parameter servers serve, and an
 * evaluator, which stands beside the job, evaluates each checkpoint as it comes. In one process
 * every checkpoint is followed by its evaluation. Started again, it goes on from the latest
 * checkpoint of the folder. */
#ifndef TUTTI_TRAIN_AND_EVALUATE_H
#define TUTTI_TRAIN_AND_EVALUATE_H

#include "tutti/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_train_spec {
    size_t struct_size;
    tutti_dataset *data; /* its epochs follow each other until the steps are done */
    int64_t max_steps;   /* in all, over restarts; 0: `epochs` of the data */
    int epochs;          /* 1, when the data's length is known and max_steps is 0 */
    int64_t save_steps;  /* between checkpoints; 0: an epoch, or 1000 when its length is unknown */
    int keep;            /* newest checkpoints kept; 0: 5 */
    struct {
        int count;
        tutti_callback *const *list;
    } callbacks; /* TUTTI_LIST(…); released at the end */
    bool quiet;
} tutti_train_spec;
#define TUTTI_TRAIN_SPEC(...) TUTTI_OPTIONS(tutti_train_spec, __VA_ARGS__)

/* What came of one checkpoint: at `step`, or -1 where that is not known. */
typedef void tutti_evaluated_fn(void *context, int64_t step, const tutti_logs *logs);
typedef struct tutti_eval_spec {
    size_t struct_size;
    tutti_dataset *data;
    int64_t steps; /* batches; 0: all */
    /* An evaluator ends with the training; or when nothing new came for so many seconds (0: 3600),
     * which is an error. */
    double patience;
    bool in_training; /* a job of several processes has no evaluator: the workers evaluate, too */
    tutti_evaluated_fn *evaluated; /* (optional) where it is evaluated, after each checkpoint */
    void *context;
} tutti_eval_spec;
#define TUTTI_EVAL_SPEC(...) TUTTI_OPTIONS(tutti_eval_spec, __VA_ARGS__)

/* Trains the compiled model as this process's role says. Whoever evaluates adds a line for each
 * checkpoint to <folder>/evaluations.jsonl: {"step": 500, "loss": 0.31, …}. An evaluator calls it
 * before anything else has used the model. What goes wrong is the job's error, too. */
TUTTI_API tutti_status tutti_train_and_evaluate(tutti_model *model, const char *folder,
                                                const tutti_train_spec *train,
                                                const tutti_eval_spec *evaluation);

#ifdef __cplusplus
}
#endif
#endif
