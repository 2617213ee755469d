/* register.c: the list of acme's operators. */
#include "acme.h"

tutti_status acme_register(void)
{
    const tutti_op *ops[] = {&acme_cubic_swish, &acme_weighted_rows, &acme_keep_positive};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        TUTTI_TRY(tutti_op_register(ops[i]));
    return TUTTI_OK;
}
