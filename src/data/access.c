/* access.c: elements by number. */
#include <stdlib.h>

#include "data/dataset.h"

#define PIECE 256 /* numbers at a time */

tutti_status tutti__access_open(const tutti_dataset *dataset, const tutti_share *share,
                                const atomic_bool *cancel, tutti_access **ret)
{
    tutti_access *made = calloc(1, sizeof *made);
    if (!made)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to reach into %s", dataset->def->name);
    made->dataset = dataset;
    made->cancel = cancel;
    made->share = dataset->share ? dataset->share : share;
    made->state = calloc(1, dataset->def->access_size + 1);
    made->inputs = calloc((size_t)dataset->input_count + 1, sizeof *made->inputs);
    tutti_status status = TUTTI_OK;
    if (!made->state || !made->inputs)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory to reach into %s", dataset->def->name);
    for (int i = 0; i < dataset->input_count && status == TUTTI_OK; i++)
        if (dataset->inputs[i]->access != TUTTI_ACCESS_NONE)
            status = tutti__access_open(dataset->inputs[i], share, cancel, &made->inputs[i]);
    if (status != TUTTI_OK) {
        tutti__access_close(made);
        return status;
    }
    *ret = made;
    return TUTTI_OK;
}

void tutti__access_close(tutti_access *access)
{
    if (!access)
        return;
    if (access->state && access->inputs && access->dataset->def->leave)
        access->dataset->def->leave(access);
    for (int i = 0; access->inputs && i < access->dataset->input_count; i++)
        tutti__access_close(access->inputs[i]);
    free(access->inputs);
    free(access->state);
    free(access);
}

tutti_status tutti__access_at(tutti_access *access, uint64_t epoch, int64_t index,
                              tutti_element *ret)
{
    const tutti_dataset *dataset = access->dataset;
    if (dataset->def->at)
        return dataset->def->at(access, epoch, index, ret);
    if (dataset->def->renumber) {
        int64_t below = 0;
        TUTTI_TRY(dataset->def->renumber(access, epoch, 1, &index, &below));
        return tutti__access_at(access->inputs[0], epoch, below, ret);
    }
    tutti_element made;
    TUTTI_TRY(tutti__element_create(dataset->info.components, dataset->info.types, -1, &made));
    tutti_status status = dataset->def->gather(access, epoch, 1, &index, made.tensors, 0);
    if (status != TUTTI_OK) {
        tutti_element_release(&made);
        return status;
    }
    *ret = made;
    return TUTTI_OK;
}

tutti_status tutti__access_gather(tutti_access *access, uint64_t epoch, int64_t count,
                                  const int64_t *indices, tutti_tensor *const *rows, int64_t first)
{
    const tutti_dataset_def *def = access->dataset->def;
    if (def->gather)
        return def->gather(access, epoch, count, indices, rows, first);
    int64_t below[PIECE] = {0};
    for (int64_t done = 0; done < count; done += PIECE) {
        int64_t piece = count - done < PIECE ? count - done : PIECE;
        TUTTI_TRY(def->renumber(access, epoch, piece, indices + done, below));
        TUTTI_TRY(tutti__access_gather(access->inputs[0], epoch, piece, below, rows, first + done));
    }
    return TUTTI_OK;
}
