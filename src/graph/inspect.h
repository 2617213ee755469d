/* inspect.h: values marked by tutti_inspect, and what was seen of them.
 *
 * Marks stand in the graph they were made in; no node is added for them. A run that looks asks for
 * the due ones (wanted), gets them as fetches of its own, and hands their values over (seen). Those
 * of a trace go with its step; what was seen stays. Threads may run one graph: a lock is inside. */
#ifndef TUTTI_GRAPH_INSPECT_H
#define TUTTI_GRAPH_INSPECT_H

#include "graph/graph.h"
#include "tutti/inspect.h"

typedef struct tutti_inspection tutti_inspection;

/* Whether there is a pattern. */
bool tutti__inspect_on(void);

/* The marks of a run that it is to fetch. */
typedef struct tutti_wanted_mark {
    tutti_edge edge;
    uint64_t step;
    char *name;
} tutti_wanted_mark;
typedef TUTTI_VEC(tutti_wanted_mark) tutti_wanted_marks;
void tutti__inspect_free(tutti_wanted_marks *wanted);

/* Of what the fetches and targets need and the feeds do not give. */
tutti_status tutti__inspect_wanted(tutti_graph *graph, const tutti_extract *asked,
                                   tutti_wanted_marks *ret);
/* Of a trace: marks from node `first` on, each once. */
tutti_status tutti__inspect_wanted_since(tutti_graph *graph, uint32_t first,
                                         tutti_wanted_marks *ret);
/* Keeps a value, of which it takes a reference, and prints it. */
tutti_status tutti__inspect_seen(tutti_graph *graph, const tutti_wanted_mark *mark,
                                 tutti_tensor *value, bool prints);

/* Mark `index`, in the order they were made; false: there are not so many. */
bool tutti__inspect_mark_at(const tutti_graph *graph, size_t index, tutti_edge *ret_edge,
                            const char **ret_name);
/* How many there are; a prefix for the names of those from `first` on. */
size_t tutti__inspect_count(const tutti_graph *graph);
tutti_status tutti__inspect_prefix(tutti_graph *graph, size_t first, const char *prefix);
void tutti__inspect_reset(tutti_graph *graph);
void tutti__inspection_free(tutti_inspection *inspection);

#endif
