/* find.c: looking up loops and chain operations of the best instruction set. */
#include <string.h>

#include "device/cpu/isa.h"
#include "device/cpu/tile/chain.h"
#include "device/cpu/tile/tile.h"
#include "tables/chain.h"
#include "tables/tile_family.h"
#include "tutti/op.h"

/* Whether a row is for the operator with these attributes. */
static bool suits(const tutti_tile_op *row, const char *name, const tutti_attr *attrs,
                  int attr_count)
{
    if (strcmp(row->name, name) != 0)
        return false;
    return row->when == NULL ||
           (attrs != NULL && tutti_attr_int(attrs, attr_count, row->when) != 0);
}

/* Sets beyond the best one of vectors add to it: their few loops go first. */
const tutti_tile_op *tutti__tile_find(const char *name, const tutti_attr *attrs, int attr_count)
{
    const char *isa = tutti__best_isa();
    const tutti_tile_op *found = NULL;
    for (const tutti_tile_family *const *tile = tutti__tile_family_table; *tile != NULL; tile++) {
        bool beyond = tutti__isa_better((*tile)->isa, isa) && tutti__isa_present((*tile)->isa);
        if (!beyond && (found != NULL || strcmp((*tile)->isa, isa) != 0))
            continue;
        for (const tutti_tile_op *row = (*tile)->ops; row->name != NULL; row++)
            if (suits(row, name, attrs, attr_count)) {
                found = row;
                break;
            }
    }
    return found;
}

const tutti_chain *tutti__chain(void)
{
    const char *isa = tutti__best_isa();
    for (const tutti_chain *const *chain = tutti__chain_table; *chain != NULL; chain++)
        if (strcmp((*chain)->isa, isa) == 0)
            return *chain;
    return NULL;
}

tutti_chain_function *tutti__chain_find(const tutti_chain *chain, const char *name,
                                        tutti_chain_shape form, const char *then)
{
    for (const tutti_chain_entry *entry = chain->entries; entry->name != NULL; entry++)
        if (entry->form == form && entry->before == NULL &&
            (entry->then == NULL) == (then == NULL) && strcmp(entry->name, name) == 0 &&
            (then == NULL || strcmp(entry->then, then) == 0))
            return entry->run;
    return NULL;
}

tutti_chain_function *tutti__chain_find_after(const tutti_chain *chain, const char *before,
                                              const char *name, tutti_chain_shape form)
{
    for (const tutti_chain_entry *entry = chain->entries; entry->name != NULL; entry++)
        if (entry->form == form && entry->before != NULL && strcmp(entry->name, name) == 0 &&
            strcmp(entry->before, before) == 0)
            return entry->run;
    return NULL;
}
