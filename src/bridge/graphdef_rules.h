/* graphdef_rules.h: what the rules of TensorFlow's operators are made of, and their tables. */
#ifndef TUTTI_BRIDGE_GRAPHDEF_RULES_H
#define TUTTI_BRIDGE_GRAPHDEF_RULES_H

#include "bridge/graphdef.h"

typedef struct tutti_graphdef_entry {
    const char *op; /* NULL: the end */
    tutti_graphdef_rule *rule;
} tutti_graphdef_entry;

extern const tutti_graphdef_entry tutti__graphdef_layers[], tutti__graphdef_shapes[];

#define IN(i) tutti__graphdef_in(m, i)

static inline void made(tutti_graphdef_import *m, tutti_sym sym)
{
    if (m->status == TUTTI_OK)
        m->node->made = sym;
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
