/* layout.h: which axes of the mesh cut which dimensions, "batch:host*data; hidden:model".
 *
 * A rule maps the name of a dimension to mesh axes, the outermost first. Axes that one rule names
 * together always cut together: to the rewrite they are one, with the product of their sizes, and
 * collectives carry their names as the rule has them ("host*data"). */
#ifndef TUTTI_PARALLEL_SPMD_LAYOUT_H
#define TUTTI_PARALLEL_SPMD_LAYOUT_H

#include "graph/mesh.h"

/* Axes that cut together. Collectives go by their name; `key` is the layout's own word for them,
 * since weights may lie along the axes that cut the batch. */
typedef struct tutti_axis_set {
    char key[TUTTI_MESH_AXES * sizeof(((tutti_mesh_axis *)0)->name)];
    char name[TUTTI_MESH_AXES * sizeof(((tutti_mesh_axis *)0)->name)]; /* "host*data" */
    int count, axes[TUTTI_MESH_AXES];                                  /* of the mesh */
    int size; /* ranks: the product of the axes' sizes */
} tutti_axis_set;

enum { TUTTI_LAYOUT_RULES = 16, TUTTI_LAYOUT_AXES = TUTTI_MESH_AXES + 2 };
typedef struct tutti_layout {
    const tutti_mesh *mesh;
    int count; /* of `axes`; where two of them cut one dimension, the first is outermost */
    tutti_axis_set axes[TUTTI_LAYOUT_AXES];
    int rule_count;
    struct {
        char dimension[16];
        int axes;
    } rules[TUTTI_LAYOUT_RULES];
    int batch; /* the axes that cut the batch; -1: none do */
    /* "weights:shard": variables and their slots are stored in blocks along these axes, which are
     * some of those that cut the batch, and gathered for use (ZeRO); -1: they are not. Nothing is
     * split or partial along both at once. `others`: those of the batch that are none of them. */
    int weights, others;
} tutti_layout;

/* Whether layers name a dimension so. */
bool tutti__is_dimension_name(const char *name);

/* INVALID names an axis that the mesh lacks, a dimension that nobody names, and an axis that
 * stands in two rules with different others. The mesh must outlive the layout. */
tutti_status tutti__layout_parse(const char *text, const tutti_mesh *mesh, tutti_layout *ret);
/* The axes that a name stands for, that of a dimension or of a mesh axis; -1: none. */
int tutti__layout_find(const tutti_layout *layout, const char *name);
/* Whether a value cannot be split or partial along both: they have axes of the mesh in common. */
bool tutti__layout_overlap(const tutti_layout *layout, int a, int b);
/* The rank of a place of the mesh along axes that cut together. */
int tutti__layout_rank(const tutti_layout *layout, int axes, int place);
/* Whether these axes span the mesh, in its order: a rank along them is a place of the mesh. */
bool tutti__layout_spans(const tutti_layout *layout, int axes);

#endif
