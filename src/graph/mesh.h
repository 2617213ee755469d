/* mesh.h: devices in a grid with named axes, and how one value lies over it. Both are plain values:
 * parsed, compared, printed. */
#ifndef TUTTI_GRAPH_MESH_H
#define TUTTI_GRAPH_MESH_H

#include "graph/graph.h"

enum { TUTTI_MESH_AXES = 6, TUTTI_MESH_DEVICES = 4096 };

typedef struct tutti_mesh_axis {
    char name[16];
    int size;
} tutti_mesh_axis;

/* Devices stand in row-major order: the last axis moves first. */
typedef struct tutti_mesh {
    int axis_count;
    tutti_mesh_axis axes[TUTTI_MESH_AXES];
    int device_count; /* the product of the sizes */
    tutti_device_name *devices;
} tutti_mesh;

/* "data=2,model=4" over "cpu:0,cpu:1,…": as many devices as the sizes multiply to, all different.
 */
tutti_status tutti__mesh_create(const char *axes, const char *devices, tutti_mesh **ret);
void tutti__mesh_destroy(tutti_mesh *mesh); /* NULL is fine */
/* The axis of that name, or -1; the device's place among `devices`, or -1. */
int tutti__mesh_axis(const tutti_mesh *mesh, const char *name);
int tutti__mesh_find(const tutti_mesh *mesh, const char *device);
/* The rank of a place along an axis, and the place of rank 0 of its group: the devices that differ
 * along this axis only. */
int tutti__mesh_rank(const tutti_mesh *mesh, int place, int axis, int *ret_first);
/* The same along several axes, "host*data", the first of which moves slowest, and how many ranks
 * there are; false: the mesh lacks one of them. */
bool tutti__mesh_axes_rank(const tutti_mesh *mesh, int place, const char *axes, int *ret_rank,
                           int *ret_size, int *ret_first);
/* Whether a rank along these axes is a place of the mesh: they are all of them, in its order. */
bool tutti__mesh_axes_span(const tutti_mesh *mesh, const char *axes);
/* "data*model" as axes: how many. INVALID names one that the mesh lacks, or that stands there
 * twice. */
tutti_status tutti__mesh_axes(const tutti_mesh *mesh, const char *text,
                              int ret_axes[TUTTI_MESH_AXES], int *ret_count);
/* The devices that differ from one at a place along these axes only, by rank: the last axis moves
 * first. How many they are; ret_places (optional) has room for as many. */
int tutti__mesh_group(const tutti_mesh *mesh, int place, const int *axes, int count,
                      int *ret_places);
/* "data=2,model=4", appended. */
void tutti__mesh_print(tutti_text *out, const tutti_mesh *mesh);

/* ---- sharding.c ----
 * The text of a sharding has a word for each dimension, "-" or the axes that cut it, outermost
 * first, then what it is along others:
 *
 *     [data, -, expert*model]   dimension 0 is cut along `data`, dimension 2 along `expert` and
 * each of these pieces along `model`
 *     [-] partial(sum: data)    the value is the sum over `data` of what its ranks have
 *     [-] varying(model)        each rank along `model` has its own, as axis_index has
 */
/* Of a value with `rank` dimensions; where `mesh` is given its axes are checked. The result lies in
 * the arena. */
tutti_status tutti__sharding_parse(const char *text, int rank, const tutti_mesh *mesh,
                                   tutti_arena *arena, tutti_sharding *ret);
void tutti__sharding_print(tutti_text *out, const tutti_sharding *sharding, int rank);
/* Whether they say the same: axes along which a value is replicated need not be named, and of two
 * axes it matters which comes first only where both cut one dimension. NULL: replicated. */
bool tutti__sharding_equal(const tutti_sharding *a, const tutti_sharding *b);
/* Says of a value how it lies; the sharding must live as long as the graph. Returns the symbol. */
tutti_sym tutti__sharding_mark(tutti_sym value, const tutti_sharding *sharding);
/* The part of a value that the device at a place of the mesh has: its sizes, and where it begins.
 * A dimension of n is cut at floor(i n / N), unevenly if need be. INVALID names an axis that the
 * mesh lacks. */
tutti_status tutti__sharding_box(const tutti_sharding *sharding, const tutti_mesh *mesh, int place,
                                 int rank, const int64_t *dims, int64_t *ret_offset,
                                 int64_t *ret_dims);

#endif
