/* find.c: looking up the loops of the best instruction set. */
#include <string.h>

#include "device/cpu/integer/integer.h"
#include "device/cpu/isa.h"
#include "tables/integer_family.h"

static bool suits(const tutti_integer_op *row, const tutti_infer *node)
{
    return row->inputs == node->input_count &&
           (row->result == TUTTI_NO_DTYPE || row->result == node->outputs[0].dtype) &&
           row->loops[node->inputs[row->inputs - 1].dtype] != NULL;
}

/* The first row of the operator that suits the node, which may be NULL. */
static const tutti_integer_op *find(const tutti_op *op, const tutti_infer *node)
{
    const char *isa = tutti__best_isa();
    for (const tutti_integer_family *const *f = tutti__integer_family_table; *f != NULL; f++)
        for (const tutti_integer_op *row = (*f)->ops;
             row->name != NULL && strcmp((*f)->isa, isa) == 0; row++)
            if (strcmp(row->name, op->name) == 0 && (node == NULL || suits(row, node)))
                return row;
    return NULL;
}

const tutti_integer_op *tutti__integer_find(const tutti_infer *node)
{
    return find(node->op, node);
}

bool tutti__integer_covers(const tutti_op *op)
{
    return find(op, NULL) != NULL;
}
