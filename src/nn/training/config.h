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
 * layers' order. An output other than a node's first is "name:1".
 */
#ifndef TUTTI_NN_TRAINING_CONFIG_H
#define TUTTI_NN_TRAINING_CONFIG_H

#include "io/json.h"
#include "nn/training/trainer.h"

tutti_status tutti__config_write(tutti_model *model, tutti_json_writer *writer);
tutti_status tutti__config_read(tutti_job *job, const tutti_json *json, tutti_model **ret);

/* One layer of it, an object. */
tutti_status tutti__config_write_layer(const tutti_layer *layer, tutti_json_writer *writer);

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
