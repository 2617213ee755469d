/* ops_comm.h: communication between the devices along named axes of the device mesh, of one process
 * or several. Every device of the axis (`size` of them) runs the same node; "rank" is its place
 * along the axis. An axis of size 1 makes each of them the identity.
 *
 * `axis` names the axis, or several: "data*model" are the devices that differ along these only,
 * ranks in the order of the first, then the next. `size` is the number of devices along them. */
#ifndef TUTTI_OPS_COMM_H
#define TUTTI_OPS_COMM_H

#include "tutti/op.h"
#include "tutti/reduction.h" /* gradients flow through sum and mean */

#ifdef __cplusplus
extern "C" {
#endif

/* The reduction over all devices, on every device. */
TUTTI_API tutti_sym tutti_all_reduce(tutti_sym x, const char *axis, int64_t size,
                                     tutti_reduction reduction);
#define tutti_all_reduce(...) TUTTI_AT(tutti_all_reduce(__VA_ARGS__))
/* The values of all devices joined along dimension `dim` in the order of ranks, on every device. */
TUTTI_API tutti_sym tutti_all_gather(tutti_sym x, const char *axis, int64_t size, int dim);
#define tutti_all_gather(...) TUTTI_AT(tutti_all_gather(__VA_ARGS__))
/* Piece `rank` along dimension `dim` (which `size` divides) of the reduction over all devices. */
TUTTI_API tutti_sym tutti_reduce_scatter(tutti_sym x, const char *axis, int64_t size, int dim,
                                         tutti_reduction reduction);
#define tutti_reduce_scatter(...) TUTTI_AT(tutti_reduce_scatter(__VA_ARGS__))
/* The root's value, on every device. */
TUTTI_API tutti_sym tutti_broadcast(tutti_sym x, const char *axis, int64_t size, int64_t root);
#define tutti_broadcast(...) TUTTI_AT(tutti_broadcast(__VA_ARGS__))
/* The reduction over all devices on the root, zeros on the others. */
TUTTI_API tutti_sym tutti_reduce(tutti_sym x, const char *axis, int64_t size, int64_t root,
                                 tutti_reduction reduction);
#define tutti_reduce(...) TUTTI_AT(tutti_reduce(__VA_ARGS__))
/* Cut along `split_dim` (which `size` divides) into one piece per device; the pieces that a device
 * gets, joined along `concat_dim` in the order of ranks. */
TUTTI_API tutti_sym tutti_all_to_all(tutti_sym x, const char *axis, int64_t size, int split_dim,
                                     int concat_dim);
#define tutti_all_to_all(...) TUTTI_AT(tutti_all_to_all(__VA_ARGS__))

/* A value to another device: `channel` names the pair of send and recv, one of each in a step. `to`
 * and `from` name the devices: where they are of another process of the session's mesh
 * ("/job:worker/task:1/cpu:0") the value is a message to that process, else they are for whoever
 * reads the graph, and where both run is what their own device scopes say. Send has no output;
 * recv's type is what send's input is. Gradients flow from recv back to what is sent, where the
 * send was built first. */
TUTTI_API tutti_sym tutti_send(tutti_sym x, const char *channel, const char *to);
#define tutti_send(...) TUTTI_AT(tutti_send(__VA_ARGS__))
TUTTI_API tutti_sym tutti_recv(tutti_graph *graph, const char *channel, const char *from,
                               tutti_type type);
#define tutti_recv(...) TUTTI_AT(tutti_recv(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
