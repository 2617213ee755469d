/* config.h: a model's architecture as JSON.
 *
 *     {"tutti": "0.1.0", "kind": "functional", "name": "model", "precision": "f32",
 *      "layers": [{"kind": "dense", "name": "dense", "units": 10}, …],
 *      "inputs": [{"name": "x", "dtype": "f32", "shape": [28, 28, 1]}],
 *      "nodes": [{"name": "dense", "layer": "dense", "inputs": ["x"]},
 *                {"name": "relu", "op": "relu", "attrs": {}, "inputs": ["dense:0"]}],
 *      "outputs": [{"name": "y", "from": "relu"}],
 *      "compile": {"optimizer": {"kind": "adam", …}, "losses": […], "metrics": […]}}
 *
 * Settings with their default value are left out. A sequential model has "nodes" only by its
 * layers' order. An output other than a node's first is "name:1". Weights that were frozen or
 * unfrozen by name are lists, "frozen" and "unfrozen". An imported model also has
 *     "parts": [{"name": "/conv1/Conv", "kind": "Conv"}, …],  nodes with "part": the part's index,
 *     "values": [{"name": "/conv1/Conv_output_0", "from": "conv2d", "turned": true, "part": 0}, …].
 *
 * Weights never stand in it: a variable whose first value was given as numbers has "stored": true,
 * and begins with its weight in the file of weights beside the JSON. A large constant stands there
 * too, as "tutti.constants/<node>"; in text that no file goes with, as numbers.
 */
#ifndef TUTTI_NN_TRAINING_CONFIG_H
#define TUTTI_NN_TRAINING_CONFIG_H

#include "io/json.h"
#include "io/safetensors.h"
#include "nn/training/trainer.h"
#include "state/state.h"

#define TUTTI_CONFIG_CONSTANTS "tutti.constants/"

/* What goes into the file of weights because it is too large for JSON. */
typedef struct tutti_config_stored {
    const char *prefix; /* of names there, of the model that is being written: "" or "body/" */
    TUTTI_VEC(tutti_snapshot_entry) constants;
} tutti_config_stored;
void tutti__config_stored_free(tutti_config_stored *stored);

/* `stored` NULL: there is no file beside the JSON. */
tutti_status tutti__config_write(tutti_model *model, tutti_config_stored *stored,
                                 tutti_json_writer *writer);
tutti_status tutti__model_json(tutti_model *model, tutti_config_stored *stored, char **ret_text);

/* Where a model's JSON comes from. */
typedef struct tutti_config_source {
    const tutti_safetensors *file; /* with its weights, or NULL */
    const char *prefix;            /* as above */
    bool blank; /* what stands in the file that is not there is 0: to be looked at, not run */
} tutti_config_source;
tutti_status tutti__config_read(tutti_job *job, const tutti_config_source *from,
                                const tutti_json *json, tutti_model **ret);
tutti_status tutti__model_of_json(tutti_job *job, const tutti_config_source *from, const char *text,
                                  tutti_model **ret);
/* As tutti_model_from_json; messages begin with the file's name, where there is one. */
tutti_model *tutti__model_from_file(tutti_job *job, const char *path, const char *text);

/* One layer of it, an object. */
tutti_status tutti__config_write_layer(const tutti_layer *layer, tutti_config_stored *stored,
                                       tutti_json_writer *writer);

/* Settings by their fields. */
tutti_status tutti__settings_write(const char *who, const tutti_field *fields, const void *settings,
                                   tutti_json_writer *writer);
/* Fills zeroed settings from an object; members that are no field and not in `others` (NULL at the
 * end) are refused. Texts go into the arena. */
tutti_status tutti__settings_read(const char *who, const tutti_field *fields,
                                  const tutti_json *json, const char *const *others,
                                  tutti_arena *arena, void *settings);

/* What compile was given; nothing when the model is not compiled. */
tutti_status tutti__config_write_compile(tutti_model *model, tutti_json_writer *writer);
tutti_status tutti__config_read_compile(tutti_model *model, const tutti_json *json);

#endif
