/* graphdef.h: TensorFlow's GraphDef: graphs for TensorBoard's graph view, and frozen graphs (all
 * weights constants) as graphs of ours.
 *
 *     tutti_log_graph(graph, "logs");           then: tensorboard --logdir logs
 *     tutti_import_graphdef(graph, "frozen.pb", &ports); */
#ifndef TUTTI_GRAPHDEF_H
#define TUTTI_GRAPHDEF_H

#include "tutti/onnx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a graph's nodes, with their scopes, types and attributes, as a GraphDef: to be looked at,
 * not to be run. Constants appear with their shapes, without their values. */
TUTTI_API tutti_status tutti_export_graphdef(const tutti_graph *graph, const char *path);
/* The same into an event file in a folder of logs. */
TUTTI_API tutti_status tutti_log_graph(const tutti_graph *graph, const char *folder);

/* The nodes of a frozen GraphDef, with the loops, branches and functions in it. Placeholders that
 * an output needs become inputs, nodes that nobody uses outputs. Shapes stay as the file has them.
 * TUTTI_UNSUPPORTED names every operator that is not known; TUTTI_CORRUPT a damaged file. After a
 * failure the graph may hold some of the nodes. */
TUTTI_API tutti_status tutti_import_graphdef(tutti_graph *graph, const char *path,
                                             tutti_onnx_ports *ret_ports);

#ifdef __cplusplus
}
#endif
#endif
