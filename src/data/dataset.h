/* dataset.h: datasets from inside: what a source or transform gives, and what it is given.
 *
 * A dataset is a description. Two ways lead to its elements:
 *  - a stream: an iterator per dataset of the pipeline, one pulling from the other;
 *  - random access, where `access` is not NONE: element i of an epoch by number, through a tree of
 *    tutti_access nodes that keep what is costly to find (an epoch's permutation).
 * Iterators over datasets with random access are made here from it; `skip` is then free.
 *
 * Invariants:
 *  1. What element i of epoch e holds depends on the settings, seed, e and i alone.
 *  2. Settings never change after construction (except a cache's store, which guards itself), so
 *     iterators of one dataset may live on different threads.
 *  3. An iterator is used by one thread at a time. Whoever runs one on a thread of its own gives it
 *     a flag to cancel it by; waits inside look at the flag every TUTTI_DATA_POLL_NS.
 *  4. Tensors handed on may be shared: nobody writes to one that it did not make. */
#ifndef TUTTI_DATA_DATASET_H
#define TUTTI_DATA_DATASET_H

#include <stdatomic.h>

#include "base/container.h"
#include "base/job.h"
#include "tutti/dataset.h"

/* What elements are but for their number of rows: dimension 0 says nothing. */
typedef struct tutti_likeness {
    int64_t count;
    tutti_type types[TUTTI_MAX_COMPONENTS];
} tutti_likeness;

/* What is wanted here of a dataset that several processes read.
 *  - by element: its rows of every batch. All read the same batches in the same order.
 *  - else the process reads what nobody else reads (by file, by bytes), or everything (off), in
 *    batches of as many rows as are its own of a whole one. How many rows there are in all is known
 *    when all have said how many they have: `agree`. */
typedef struct tutti_share {
    void (*rows)(const void *context, int64_t batch, int64_t *ret_first, int64_t *ret_rows);
    const void *context;
    tutti_shard_policy policy;
    int index, count; /* of the processes */
    /* Rows that this process has for the next step; *ret_batch: that all have. Their likeness is
     * the same in all processes that have some, and becomes that of one that has none. All call it.
     */
    tutti_status (*agree)(const void *context, int64_t rows, tutti_likeness *like,
                          int64_t *ret_batch);
} tutti_share;

/* Does this process read elements of its own? */
static inline bool tutti__share_apart(const tutti_share *share)
{
    return share && share->policy != TUTTI_SHARD_ELEMENT;
}
/* A seed of its own for each process that reads apart: else all would shuffle and augment alike. */
uint64_t tutti__share_seed(const tutti_share *share, uint64_t seed);

typedef enum tutti_access_level {
    TUTTI_ACCESS_NONE,
    TUTTI_ACCESS_ELEMENTS, /* `at` works */
    TUTTI_ACCESS_ROWS,     /* `gather` works as well: types are static */
} tutti_access_level;

typedef struct tutti_access {
    const tutti_dataset *dataset;
    void *state;                  /* of def->access_size bytes, zeroed */
    struct tutti_access **inputs; /* as many as the dataset's; NULL where that has no access */
    const atomic_bool *cancel;    /* the iterator's */
    const tutti_share *share;     /* of a batch; NULL: all rows */
} tutti_access;

/* What a source reads, to choose how processes share it. */
typedef struct tutti_intake {
    int files;         /* that it can give some of; 0: none */
    bool cuts;         /* it can give a range of the bytes of all its files */
    int64_t bytes;     /* of all files; -1: not known */
    const char *stops; /* the dataset in the way, or NULL; */
    bool source;       /* which is no transform, but a source that is not read so */
} tutti_intake;

/* A kind of source or transform. One file each, ending in its descriptor.
 *
 * tables: tutti_dataset_def
 */
typedef struct tutti_dataset_def {
    const char *name, *doc;
    size_t settings_size, state_size, access_size;
    void (*destroy)(tutti_dataset *dataset); /* (optional) what the settings hold */

    /* Stream; not needed where access is always there. The iterator's inputs are opened already,
     * unless `opens_inputs`. */
    tutti_status (*open)(tutti_iterator *iterator);                     /* (optional) */
    tutti_status (*next)(tutti_iterator *iterator, tutti_element *ret); /* ret is empty before */
    tutti_status (*skip)(tutti_iterator *iterator, int64_t count,
                         int64_t *ret_skipped); /* (opt.) */
    void (*close)(tutti_iterator *iterator);    /* (optional); also after a failed open */
    bool opens_inputs;
    bool hands_on;    /* its elements are input 0's, as they are */
    bool shares_rows; /* it makes batches, and can make some of their rows only */
    bool keeps_parts; /* what it makes of a part of its input is a part of what it makes of all */
    bool deals;       /* by file, processes deal its inputs out among them */
    bool own;         /* its elements are the process's own rows, whatever others have */
    /* (optional) Of a source: what it reads; see tutti_intake. */
    void (*reads)(const tutti_dataset *dataset, struct tutti_intake *ret);

    /* Random access. `at` may be missing where `gather` is there: one row is gathered then.
     * gather writes the elements `indices[0 … count)` as rows first, first + 1, … of `rows`, one
     * contiguous tensor for each component, of the dataset's types with or without an axis before.
     */
    tutti_status (*at)(tutti_access *access, uint64_t epoch, int64_t index, tutti_element *ret);
    tutti_status (*gather)(tutti_access *access, uint64_t epoch, int64_t count,
                           const int64_t *indices, tutti_tensor *const *rows, int64_t first);
    /* Instead of both: the numbers that elements have in input 0. */
    tutti_status (*renumber)(tutti_access *access, uint64_t epoch, int64_t count,
                             const int64_t *indices, int64_t *ret_indices);
    void (*leave)(tutti_access *access); /* (optional) what the state holds */
} tutti_dataset_def;

struct tutti_dataset {
    const tutti_dataset_def *def;
    tutti_job *job;
    void *settings;
    int input_count;
    tutti_dataset **inputs;
    tutti_dataset_info info;
    tutti_access_level access;
    uint64_t hash;  /* of the pipeline: kinds and numbers, for positions */
    char place[96]; /* "train.c:12", or "" */
    bool once;      /* it can be read once: a generator without reset is in it */
    tutti_iterator *open_iterators;
    tutti_iterator *peeked;      /* of epoch 0, kept where the data can be read once */
    uint64_t epochs_begun;       /* by TUTTI_EACH_BATCH */
    tutti_iterator *each;        /* of the TUTTI_EACH_BATCH under way */
    tutti_iterator *loop;        /* of tutti_next_batch */
    bool each_waits, loop_waits; /* the next one goes on from there: */
    tutti_position each_position, loop_position;
    tutti_iterator *own;         /* the user's last, by tutti_iterate, or NULL */
    int own_rounds;              /* how many there were: 0, 1, 2 for more */
    bool own_alike;              /* all of them of one epoch */
    tutti_position own_position; /* where the last began or was closed; of a checkpoint that is */
    bool own_waits, own_over;    /* restored: where the next goes on; where an epoch ended */
    tutti_element loop_element;
    const tutti_share *share; /* what iterators that are opened now take over */
};

struct tutti_iterator {
    tutti_dataset *dataset;
    uint64_t epoch;
    int64_t delivered; /* elements given or passed over */
    void *state;       /* of def->state_size bytes, zeroed */
    tutti_iterator **inputs;
    tutti_access *access;      /* instead of inputs, where the dataset has random access */
    const atomic_bool *cancel; /* NULL, or: when it is set, everything ends with TUTTI_CANCELLED */
    const tutti_share *share;  /* of a batch; NULL: all rows */
    bool below;                /* it stands below the step that makes the batches */
    bool ended;
    tutti_error error; /* the first */
    /* Of iterators that a user holds. */
    bool users;          /* tutti_iterate made it */
    tutti_element first; /* was peeked at: comes next */
    int64_t waited_ns;
    tutti_iterator *next_open, **open_place;
};

/* A dataset with settings zeroed, job, names and types those of input 0, cardinality unknown, no
 * random access; owned by the job. NULL when the job (or an input) is NULL or has failed. */
tutti_dataset *tutti__dataset_create(const tutti_dataset_def *def, tutti_job *job, int input_count,
                                     tutti_dataset *const *inputs);
void tutti__dataset_destroy(void *dataset); /* what the job does at its end */
/* Makes a failure of a constructor the job's, with the def's name and the user's place; NULL. */
tutti_dataset *tutti__dataset_fail(tutti_job *job, const tutti_dataset_def *def,
                                   tutti_status status);
/* The same for a wrong argument: the message is "batch (train.c:12): …". */
tutti_dataset *tutti__dataset_wrong(tutti_job *job, const tutti_dataset_def *def,
                                    const char *format, ...) TUTTI_PRINTF(3, 4);
/* A name kept as long as the job; "" when there is no memory. */
const char *tutti__dataset_name(tutti_job *job, const char *name);
/* Names "x", "y", then "2", "3", … for those that have none. */
void tutti__dataset_default_names(tutti_dataset *dataset);
/* Mixes a number that changes what the elements are into the pipeline's hash. */
void tutti__dataset_note(tutti_dataset *dataset, uint64_t number);
/* A type that nothing is known of. */
tutti_type tutti__type_unknown(void);
/* The seed in force: `seed`, or the job's. */
uint64_t tutti__dataset_seed(const tutti_dataset *dataset, uint64_t seed);
/* ROWS needs static types of every component; lowers the level where they are not. */
void tutti__dataset_set_access(tutti_dataset *dataset, tutti_access_level level);
/* "map (train.c:12): element 7 of epoch 0: …" before the last message. */
tutti_status tutti__element_failed(const tutti_dataset *dataset, uint64_t epoch, int64_t index,
                                   tutti_status status);

/* ---- share.c ---- */
/* Between these two, iterators of the pipeline give the shared rows of batches only, and say in
 * `rows` how many there are in all. False where the batches are not made by the last steps of the
 * pipeline: then iterators give all rows. `share` must outlive the iterators. */
bool tutti__share_begin(tutti_dataset *dataset, const tutti_share *share);
void tutti__share_end(tutti_dataset *dataset);
/* How `count` processes are to share the dataset: `wanted`, or what is best where that is
 * TUTTI_SHARD_AUTO. INVALID where it cannot be shared so, with the reason. */
tutti_status tutti__share_choose(const tutti_dataset *dataset, tutti_shard_policy wanted, int count,
                                 tutti_shard_policy *ret);
/* "by file: each of 2 workers reads some of 8 files" */
void tutti__share_describe(const tutti_dataset *dataset, tutti_shard_policy policy, int count,
                           tutti_text *text);
const char *tutti__share_name(tutti_shard_policy policy);
/* Does the dataset give the process's own rows? */
bool tutti__dataset_is_own(const tutti_dataset *dataset);
/* Makes one of it: `share` says how processes agree, and must outlive it; NULL: there is one. */
tutti_dataset *tutti__dataset_own(tutti_dataset *input, const tutti_share *share);
/* After an element was taken: all agree on the rows; who has none left gets empty rows until all
 * are at their end. */
tutti_status tutti__share_meet(tutti_iterator *iterator, tutti_element *element);
/* Where the part `index` of `count` of so many bytes begins. */
static inline int64_t tutti__share_bound(int64_t bytes, int count, int index)
{
    return bytes / count * index + bytes % count * index / count;
}

/* ---- loop.c: where hand-written loops stand ---- */

/* What TUTTI_EACH_BATCH, tutti_next_batch and the user's iterators have read of the job's datasets,
 * as text from malloc:
 * "pipeline place epoch delivered;" for each. `place` tells pipelines apart that are alike. */
tutti_status tutti__loops_save(const tutti_job *job, char **ret_text);
/* The next of them go on from there. INVALID where there is no such pipeline. */
tutti_status tutti__loops_restore(tutti_job *job, const char *text);

/* ---- iterators inside the pipeline ---- */

#define TUTTI_DATA_POLL_NS 10000000

/* tutti_iterate for the library's own needs: no place of the user's. */
tutti_iterator *tutti__iterate(tutti_dataset *dataset, uint64_t epoch);
tutti_status tutti__iterator_open(tutti_dataset *dataset, uint64_t epoch, const atomic_bool *cancel,
                                  tutti_iterator **ret);
/* Input `which` of an iterator, for those that open their inputs themselves. */
tutti_status tutti__iterator_open_input(const tutti_iterator *parent, int which, uint64_t epoch,
                                        const atomic_bool *cancel, tutti_iterator **ret);
void tutti__iterator_close(tutti_iterator *iterator); /* NULL is fine */
/* The next element, or an empty one at the end, which is then the end for good. */
tutti_status tutti__iterator_next(tutti_iterator *iterator, tutti_element *ret);
/* *ret_skipped < count only at the end. */
tutti_status tutti__iterator_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped);
/* TUTTI_CANCELLED when the iterator's flag is set. */
tutti_status tutti__iterator_check(const tutti_iterator *iterator);

/* ---- random access ---- */

/* `share`: of the iterator that it is for, or NULL. */
tutti_status tutti__access_open(const tutti_dataset *dataset, const tutti_share *share,
                                const atomic_bool *cancel, tutti_access **ret);
void tutti__access_close(tutti_access *access); /* NULL is fine */
tutti_status tutti__access_at(tutti_access *access, uint64_t epoch, int64_t index,
                              tutti_element *ret);
tutti_status tutti__access_gather(tutti_access *access, uint64_t epoch, int64_t count,
                                  const int64_t *indices, tutti_tensor *const *rows, int64_t first);

/* ---- elements ---- */

/* New tensors for `rows` rows of types (rows < 0: without an axis for them), contents undefined. */
tutti_status tutti__element_create(int components, const tutti_type *types, int64_t rows,
                                   tutti_element *ret);
/* Puts `tensor` into row `row` of `rows`, a contiguous tensor with one axis more. */
tutti_status tutti__row_put(tutti_tensor *rows, int64_t row, const tutti_tensor *tensor);
/* A view of row `row`. */
tutti_status tutti__row_of(tutti_tensor *tensor, int64_t row, tutti_tensor **ret);
/* Elements with equal types stacked along a new axis 0. */
tutti_status tutti__element_stack(int64_t count, const tutti_element *elements, tutti_element *ret);
/* Retains all components. */
tutti_element tutti__element_share(const tutti_element *element);

#endif
