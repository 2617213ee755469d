/* embedding_lookup.c: rows of a table. gather along axis 0, whose gradient is sparse. */
#include "ops/composite.h"
#include "ops/network/network.h"

tutti_sym(tutti_embedding_lookup)(tutti_sym table, tutti_sym ids)
{
    return tutti_gather(table, ids, 0);
}

const tutti_composite tutti_composite_embedding_lookup = {
    .name = "embedding_lookup",
    .category = "network",
    .doc =
        "embedding_lookup(table, ids): y[..., :] = table[ids[...], :]; the gradient of the table is rows",
    .made_of = "gather",
};
