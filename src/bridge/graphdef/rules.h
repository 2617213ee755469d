/* rules.h: what the rules of TensorFlow's operators are made of, and their tables. */
#ifndef TUTTI_BRIDGE_GRAPHDEF_RULES_H
#define TUTTI_BRIDGE_GRAPHDEF_RULES_H

#include "bridge/graphdef/graphdef.h"

typedef struct tutti_graphdef_entry {
    const char *op; /* NULL: the end */
    tutti_graphdef_rule *rule;
} tutti_graphdef_entry;

extern const tutti_graphdef_entry tutti__graphdef_layers[], tutti__graphdef_shapes[],
    tutti__graphdef_lists[], tutti__graphdef_control[], tutti__graphdef_indices[],
    tutti__graphdef_elements[], tutti__graphdef_windows[];

/* x of a node whose data_format says channels first (NCHW, NCDHW), channels last; and a result as
 * the node gives it. Others stay. */
tutti_sym tutti__graphdef_channels_last(const tutti_graphdef_import *m, tutti_sym x);
tutti_sym tutti__graphdef_channels_back(const tutti_graphdef_import *m, tutti_sym x);

#define IN(i) tutti__graphdef_in(m, i)

static inline void made(tutti_graphdef_import *m, tutti_sym sym)
{
    if (m->status == TUTTI_OK)
        tutti__graphdef_give(m, 0, &(tutti_graphdef_value){.sym = sym});
}

static inline int64_t attr_int(const tutti_graphdef_import *m, const char *name, int64_t fallback)
{
    const tutti_graphdef_attr *attr = tutti__graphdef_attr(m->node, name);
    return attr ? attr->i : fallback;
}

static inline const char *attr_string(const tutti_graphdef_import *m, const char *name,
                                      const char *fallback)
{
    const tutti_graphdef_attr *attr = tutti__graphdef_attr(m->node, name);
    return attr ? attr->s : fallback;
}

#endif
