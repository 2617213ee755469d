/* parameter_server.h: what lies on parameter servers, by name, beside training (tutti/strategy.h).
 */
#ifndef TUTTI_PARAMETER_SERVER_H
#define TUTTI_PARAMETER_SERVER_H

#include "tutti/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor that the servers of a strategy have: a variable ("dense/kernel"), or an optimizer's slot
 * of it ("dense/kernel/adam/m"), from the first step on that moves it. get: a new tensor, as it is
 * when the consistency lets this worker read; put: whatever others have made of it; its type is the
 * variable's. Both block; TUTTI_NOT_FOUND where there is none of that name. */
TUTTI_API tutti_status tutti_get(tutti_strategy *strategy, const char *name,
                                 tutti_tensor **ret_tensor);
TUTTI_API tutti_status tutti_put(tutti_strategy *strategy, const char *name, tutti_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
