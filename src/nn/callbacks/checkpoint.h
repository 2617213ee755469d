/* checkpoint.h: checkpoints for callbacks that go on from them. */
#ifndef TUTTI_NN_CALLBACKS_CHECKPOINT_H
#define TUTTI_NN_CALLBACKS_CHECKPOINT_H

#include "nn/callbacks/common.h"

/* Removes a checkpoint's files; what is not there does not matter. */
void tutti__checkpoint_remove(const char *path);
/* The folder that a tutti_checkpoint callback saves into; false for any other callback, and where
 * the folder's name changes or holds weights alone. */
bool tutti__checkpoint_folder(const tutti_callback *callback, size_t size, char *ret_folder);

/* The step of a checkpoint whose every byte is right, or whose generation before is; -1 of what is
 * none. NOT_FOUND where there is no file; anything else: one that is damaged or cannot be read. */
tutti_status tutti__checkpoint_peek(const char *path, int64_t *ret_step);
/* As tutti_latest_checkpoint, with its step; *ret_damage says what was passed over, or is OK. */
tutti_status tutti__checkpoint_latest(const char *folder, size_t size, char *ret_path,
                                      int64_t *ret_step, tutti_error *ret_damage);
/* Restores the checkpoint `file` or the newest of a folder (either may be NULL), whichever is
 * farther; *ret_found is false when there is none. Fails where there are some and none is good: to
 * begin anew would overwrite them; and where the job's processes, which all have to ask, did not
 * find the same. */
tutti_status tutti__resume_from(tutti_model *model, const char *folder, const char *file,
                                bool *ret_found);

/* When --save saves where the training stands: after the first step, in place of what an older
 * training left; every so many steps (--set save_every=N, 0: not by steps); and when nothing was
 * saved for TUTTI_SAVE_SECONDS. */
typedef struct tutti_pace {
    int64_t every;
    int64_t last; /* ns; 0: not yet */
    int64_t step; /* the last one that it was asked for: between two of them some may be passed */
} tutti_pace;
bool tutti__pace_due(tutti_pace *pace, int64_t step);

/* Where a training stands is saved for its own sake: that this fails (a full disk) is a warning,
 * which the job's end repeats. */
tutti_status tutti__keep_going(tutti_job *job, tutti_status status);

/* What --save and --resume ask for. With `resume`, training begins with the newest checkpoint of
 * `folder` (or NULL) or with the one beside `path` (or NULL), whichever is farther. That one is
 * saved when training is interrupted, and without a folder also after each epoch and by its pace.
 */
tutti_callback *tutti__training_save_resume(const char *path, bool resume, const char *folder,
                                            int64_t every);
/* Saves the model when training ends. */
tutti_callback *tutti__model_save_resume(const char *path);

#endif
