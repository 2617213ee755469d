/* share.h: several sessions and eager contexts over one engine: the same variables, one cache. The
 * engine must outlive them. */
#ifndef TUTTI_EXEC_PLAN_SHARE_H
#define TUTTI_EXEC_PLAN_SHARE_H

#include "exec/engine.h"
#include "tutti/tape.h"

tutti_status tutti__session_share(tutti_graph *graph, tutti_engine *engine,
                                  tutti_session **ret_session);
/* The variable in the session's state; INVALID when it is none of its graph's. */
tutti_status tutti__session_variable(tutti_session *session, tutti_sym sym,
                                     tutti_state_variable **ret);
/* What a session stands on; the session's. */
tutti_engine *tutti__session_engine(tutti_session *session);
tutti_status tutti__eager_share(tutti_engine *engine, tutti_eager **ret_eager);

#endif
