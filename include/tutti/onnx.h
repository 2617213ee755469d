/* onnx.h: models as ONNX files, which other programs run: onnxruntime, TensorRT, OpenVINO, …
 *
 *     tutti_export_onnx(model, "mnist.onnx");
 *     tutti_model *again = tutti_import_onnx(job, "mnist.onnx");
 *
 * Files hold a model's inference form: dropout is gone, batch norm uses its moving averages. Inputs
 * and outputs keep their names and our order of dimensions, images stay [batch, height, width,
 * channels]; inside, convolutions and pooling see channels first, as ONNX has it. */
#ifndef TUTTI_ONNX_H
#define TUTTI_ONNX_H

#include "tutti/model.h"
#include "tutti/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_onnx_options {
    size_t struct_size;
    int opset; /* 17 (the default) to 21 */
} tutti_onnx_options;

/* Writes the model's outputs as functions of its inputs, with the weights' present values under
 * their names. The first dimension is free and named "batch"; other unknown dimensions of an input
 * are named after it. The model must have been built. The file appears whole or not at all.
 * A model that computes in bf16 computes in f32 there. TUTTI_UNSUPPORTED names every operator that
 * has no form in ONNX. Strings cannot be exported. */
TUTTI_API tutti_status tutti_export_onnx_with(tutti_model *model, const char *path,
                                              const tutti_onnx_options *options);
#define tutti_export_onnx(model, path, ...)                                                        \
    tutti_export_onnx_with((model), (path), TUTTI_OPTIONS(tutti_onnx_options, __VA_ARGS__))

/* The same for a graph: `outputs` as functions of `inputs`, which are placeholders or any other
 * symbols; variables have the session's values. Names are those of the nodes. */
TUTTI_API tutti_status tutti_export_graph_onnx_with(tutti_session *session, const char *path,
                                                    int input_count, const tutti_sym *inputs,
                                                    int output_count, const tutti_sym *outputs,
                                                    const tutti_onnx_options *options);
#define tutti_export_graph_onnx(session, path, input_count, inputs, output_count, outputs, ...)    \
    tutti_export_graph_onnx_with((session), (path), (input_count), (inputs), (output_count),       \
                                 (outputs), TUTTI_OPTIONS(tutti_onnx_options, __VA_ARGS__))

/* A functional model made from an ONNX file of opset 7 to 28, which runs, trains and is saved like
 * any other. Floating initializers become trainable weights under their names, in our order of
 * dimensions where only convolutions or recurrent layers use them; means and variances of batch
 * norm are weights that are not trained, and batch norm stays in its inference form. Dimension 0 of
 * every input and output counts as the batch, whatever the file says of it. Data outside the file
 * is read from the file's folder only. NULL after an error, which is the job's: a damaged file, or
 * everything in it that is not supported, named at once. */
TUTTI_API tutti_model *tutti_import_onnx(tutti_job *job, const char *path);

/* An input or output of an imported graph. */
typedef struct tutti_onnx_port {
    const char *name;
    tutti_sym sym;
} tutti_onnx_port;
typedef struct tutti_onnx_ports {
    int input_count, output_count;
    const tutti_onnx_port *inputs, *outputs; /* live as long as the graph */
} tutti_onnx_ports;

/* A value of an input that is known before the graph is built. */
typedef struct tutti_onnx_given {
    const char *name;
    tutti_tensor *value;
} tutti_onnx_given;
typedef struct tutti_onnx_graph_options {
    size_t struct_size;
    bool constants; /* weights are constants, which is all that inference needs; else variables */
    /* Inputs that operators want to know while the graph is built (axes, pads, numbers of pieces)
     * are taken from here; the graph is then right for these values only. Inputs whose rank the
     * file leaves open have the value's. */
    int given_count;
    const tutti_onnx_given *given;
} tutti_onnx_graph_options;

/* An ONNX file as nodes of a graph, for models that are no models of ours: scalars as inputs, none
 * at all, no batch. Inputs become placeholders of the file's types. After a failure the graph may
 * hold some of the nodes. */
TUTTI_API tutti_status tutti_import_graph_onnx_with(tutti_graph *graph, const char *path,
                                                    tutti_onnx_ports *ret_ports,
                                                    const tutti_onnx_graph_options *options);
#define tutti_import_graph_onnx(graph, path, ret_ports, ...)                                       \
    tutti_import_graph_onnx_with((graph), (path), (ret_ports),                                     \
                                 TUTTI_OPTIONS(tutti_onnx_graph_options, __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
