/* embedding_lookup.c: rows of a table. gather along axis 0, whose gradient is sparse. */
#include "ops/network/network.h"

tutti_sym(tutti_embedding_lookup)(tutti_sym table, tutti_sym ids)
{
    return tutti_gather(table, ids, 0);
}
