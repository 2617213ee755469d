/* scope.h: what the scopes in force give a new node. */
#ifndef TUTTI_GRAPH_SCOPE_H
#define TUTTI_GRAPH_SCOPE_H

#include "graph/graph.h"

/* The name that the next node of this operator will get, if it has no wish; not in a trace. False:
 * it has no room. */
bool tutti__scope_next_name(const tutti_graph *graph, const char *op, char *text, size_t size);
/* Gives the node its name (made unique), device, colocation, control edges and user place. */
tutti_status tutti__scope_apply(tutti_graph *graph, tutti_node *node, const char *wished_name);

/* The name prefix in force, "layer1/" or "". */
const char *tutti__scope_prefix(const tutti_graph *graph);

/* A control scope that waits for each of the nodes, however many they are; `what` they are, for
 * messages. */
void tutti__control_push(tutti_graph *graph, const char *what, int count, const tutti_sym *after);
/* Whether a control scope is in force: then reads are not shared. */
bool tutti__scope_has_control(const tutti_graph *graph);

/* The device and the stage that scopes in force give; "" and 0: none. */
const char *tutti__scope_device(tutti_graph *graph, char text[TUTTI_DEVICE_TEXT]);
int tutti__scope_stage(const tutti_graph *graph);

/* Whether a device scope is in force. */
bool tutti__scope_has_device(const tutti_graph *graph);
/* By id, where nodes stand by the graph alone, whatever a run feeds or leaves out; "": where the
 * session says. The caller's, its texts the graph's; NULL: no memory. */
const char **tutti__devices_by_graph(const tutti_graph *graph);

/* Around a reset of the graph's arena: open scopes stay, with what they say of names and devices;
 * between the two calls their texts are the caller's. NULL: there are none. */
char **tutti__scopes_lift(tutti_graph *graph);
void tutti__scopes_lay_down(tutti_graph *graph, char **texts);

/* A trace begins anew: everything but handles, what was asked of their gradients, and open scopes
 * goes; symbols of before become stale. */
void tutti__graph_reset(tutti_graph *graph);

#endif
