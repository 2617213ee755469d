/* meet.h: the parts of partitioning to each other. */
#ifndef TUTTI_PASSES_MEET_H
#define TUTTI_PASSES_MEET_H

#include "graph/graph.h"

/* The job's nodes in an order in which devices that meet, each going through its own nodes in this
 * order, do not wait for each other in a circle: a send stands before its recv, and the peers of a
 * collective stand together where what they need allows it.
 *
 * home: device by node id. ret_order: all nodes. ret_number: by node id, a collective's place among
 * those along its axis on its device. ret_partner: by node id, of a recv its send, of a collective
 * the next one in the ring of the peers that it stands with; else NULL. */
tutti_status tutti__meeting_order(const tutti_graph *job, const int *home,
                                  const tutti_node **ret_order, int *ret_number,
                                  const tutti_node **ret_partner);

/* ret_partner of a job that is not placed, and stays so; a send has its recv too. */
tutti_status tutti__meeting_partners(tutti_graph *job, const char *fallback,
                                     const tutti_node **ret_partner);

/* The job's send of the same channel as a recv, or NULL. */
const tutti_node *tutti__matching_send(const tutti_graph *job, const tutti_node *recv);

#endif
