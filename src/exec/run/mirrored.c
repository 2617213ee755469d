/* mirrored.c: the copies of a variable on the devices of a session's strategy. */
#include "base/require.h"
#include "exec/plan/share.h"
#include "tutti/strategy.h"

int tutti_mirrored_count(tutti_session *session, tutti_sym variable)
{
    if (!session)
        return 0;
    tutti_state_variable *found =
        variable.node ? tutti__state_find(tutti__engine_state(tutti__session_engine(session)),
                                          tutti__state_name(variable.node))
                      : NULL;
    return found ? (int)found->pieces.count : 0;
}

tutti_status tutti_mirrored_get(tutti_session *session, tutti_sym variable, int local,
                                tutti_tensor **ret_value)
{
    TUTTI_REQUIRE(session);
    tutti_state *state = tutti__engine_state(tutti__session_engine(session));
    if (local < 0 || local >= tutti_mirrored_count(session, variable))
        return tutti_fail(TUTTI_INVALID, "there is no copy %d of this variable", local);
    tutti_state_variable *found = tutti__state_find(state, tutti__state_name(variable.node));
    TUTTI_TRY(tutti__variable_intact(found));
    tutti_tensor *value = tutti__piece_acquire(state, found->pieces.data[local]), *host;
    if (!value)
        return tutti_fail(TUTTI_UNINITIALIZED, "variable '%s' has no value on %s",
                          variable.node->name, found->pieces.data[local]->device);
    tutti_status status = tutti__tensor_to_host(value, &host);
    if (status == TUTTI_OK) {
        status = tutti_tensor_cast(host, tutti_tensor_dtype(host), ret_value);
        tutti_tensor_release(host);
    }
    tutti_tensor_release(value);
    return status;
}
