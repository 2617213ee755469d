/* plugin.c: what host.c loads: it uses Tutti, whose threads then wait for more work. */
#include "tutti/tutti.h"

int use(void);

int use(void)
{
    tutti_graph *g = NULL;
    tutti_session *session = NULL;
    tutti_tensor *value = NULL;
    tutti_status status = tutti_graph_create(&g);
    if (status == TUTTI_OK)
        status = tutti_session_open(&session, g);
    if (status == TUTTI_OK) {
        tutti_sym a = tutti_random_normal(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 700, 700));
        status = tutti_run(session, .fetch = TUTTI_FETCH({tutti_matmul(a, a), &value}));
    }
    tutti_tensor_release(value);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return status == TUTTI_OK ? 0 : 1;
}
