/* checkpoint.h: models in files.
 *
 *     tutti_save_model(m, "mnist")                 mnist.safetensors and mnist.json
 *     tutti_load_model(job, "mnist")         the same model again
 *     tutti_save_checkpoint(m, "ckpt/{epoch}")   weights, optimizer, step, random state, data
 *                                            position
 *     tutti_restore_checkpoint(m, "ckpt/3")      training goes on as if it had never stopped
 *
 * Files are safetensors, which other programs read. They carry checksums and are replaced
 * atomically; what was there before stays as "….previous" and is used, with a message, when the
 * newer one is damaged. Temporary files of processes that died go with the next saving.
 *
 * What a checkpoint has of a variable or queue that is another in the program (type, shape, a
 * queue's components, a capacity below the tuples that are saved) is TUTTI_INVALID, which names
 * both and the file. Strings are kept like numbers.
 *
 * Calls with a model or a job need no checking: what goes wrong in them is the job's error too.
 * Whether a file is there is to be asked before it is loaded (tutti_latest_checkpoint). */
#ifndef TUTTI_CHECKPOINT_H
#define TUTTI_CHECKPOINT_H

#include "tutti/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names that a file has for weights, where these have others: a '*' on both sides stands for the
 * same text. A weight goes by the first line that names it, and by its own name without one.
 *     .names = TUTTI_WEIGHT_NAMES({"words/embeddings", "wte.weight"},
 *                                 {"block_*" "/mlp/up/kernel", "h.*.mlp.c_fc.weight"}) */
typedef struct tutti_weight_name {
    const char *weight, *file;
} tutti_weight_name;
typedef struct tutti_weight_names {
    int count;
    const tutti_weight_name *list;
} tutti_weight_names;
#define TUTTI_WEIGHT_NAMES(...)                                                                    \
    {                                                                                              \
        sizeof((tutti_weight_name[]){__VA_ARGS__}) / sizeof(tutti_weight_name),                    \
            (const tutti_weight_name[])                                                            \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

typedef struct tutti_save_weights_options {
    size_t struct_size;
    const char *prefix; /* put before the names */
    tutti_weight_names names;
} tutti_save_weights_options;
/* Weights alone. ".safetensors" is added to the path when it is missing. Above 5 GB of data
 * (TUTTI_SHARD_BYTES), several files with an index: docs/file-formats.md. */
TUTTI_API tutti_status tutti_save_weights_with(tutti_model *model, const char *path,
                                               const tutti_save_weights_options *options);
#define tutti_save_weights(model, ...)                                                             \
    tutti_save_weights_with((model), TUTTI_ONE_(tutti_save_weights_options, __VA_ARGS__, ))

/* What did and did not match when weights were loaded. Texts are lists of names, with shapes where
 * those differ; from malloc, NULL when empty. */
typedef struct tutti_load_report {
    int loaded;
    int missing;    /* weights of the model that the file lacks */
    int unused;     /* tensors of the file that the model lacks */
    int mismatched; /* of another shape or type */
    char *text;     /* one line each; from malloc */
} tutti_load_report;
typedef struct tutti_load_weights_options {
    size_t struct_size;
    bool partial;             /* takes what matches; otherwise anything else is an error */
    const char *prefix;       /* only names that begin with this, without it */
    const char *maybe_prefix; /* names that begin with this count without it */
    const char *ignored; /* tensors of the file that the model may lack: "*.attn.bias, other" */
    tutti_weight_names names;
    tutti_load_report *report; /* or NULL */
} tutti_load_weights_options;
/* By name, from any safetensors file. The model must have been built. */
TUTTI_API tutti_status tutti_load_weights_with(tutti_model *model, const char *path,
                                               const tutti_load_weights_options *options);
#define tutti_load_weights(model, ...)                                                             \
    tutti_load_weights_with((model), TUTTI_ONE_(tutti_load_weights_options, __VA_ARGS__, ))

/* The architecture as JSON text (from malloc): layers with their settings, how they are joined, and
 * what compile was given. Layers with code in them (lambda) and subclassed models cannot be told.
 */
TUTTI_API tutti_status tutti_model_to_json(tutti_model *model, char **ret_text);
/* A model from such text; its weights are new. NULL after an error. */
TUTTI_API tutti_model *tutti_model_from_json(tutti_job *job, const char *text);

/* Architecture and weights: "<path>.json" and "<path>.safetensors". */
TUTTI_API tutti_status tutti_save_model(tutti_model *model, const char *path);
/* Both again; NULL after an error. The path with or without an ending. */
TUTTI_API tutti_model *tutti_load_model(tutti_job *job, const char *path);

/* Everything that training needs to go on. {epoch} (from 1) and {step} in the path are replaced. */
TUTTI_API tutti_status tutti_save_checkpoint(tutti_model *model, const char *path);
/* The same while training goes on. One at a time: a second waits for the first. What went wrong is
 * said by the next call, or by tutti_checkpoint_wait. */
TUTTI_API tutti_status tutti_save_checkpoint_async(tutti_model *model, const char *path);
TUTTI_API tutti_status tutti_checkpoint_wait(tutti_model *model);
/* To be called after tutti_compile and before tutti_fit, which then goes on in the middle of the
 * epoch, to the same bits. */
TUTTI_API tutti_status tutti_restore_checkpoint(tutti_model *model, const char *path);
/* Path of the checkpoint with the highest step in a folder, damaged ones passed over;
 * TUTTI_NOT_FOUND when there is none. */
TUTTI_API tutti_status tutti_latest_checkpoint(const char *folder, size_t size, char *ret_path);

#ifdef __cplusplus
}
#endif
#endif
