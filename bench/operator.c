/* operator.c: one operator's time inside a session. */
#include "bench/operator.h"

#include "bench/roofline.h"
#include "exec/plan/share.h"

double tutti__operator_seconds(tutti_graph *graph, tutti_sym y, int feed_count,
                               const tutti_feed *feeds, int repeats)
{
    tutti_session *session;
    tutti_roofline *roofline = NULL;
    tutti_type type = tutti_sym_type(y);
    tutti_sym some = y;
    for (int axis = 0; axis < type.rank; axis++)
        some = tutti_slice_axis(some, axis, 0, 1);
    tutti__bench_must(tutti_graph_check(graph));
    tutti__bench_must(tutti_session_open(&session, graph));
    for (int i = 0; i < repeats + 2; i++) {
        tutti_tensor *value;
        tutti__bench_must(
            tutti_run(session, .feed = {feed_count, feeds}, .fetch = TUTTI_FETCH({some, &value})));
        tutti_tensor_release(value);
        if (!roofline)
            roofline = tutti__roofline_open(tutti__session_engine(session));
        tutti__roofline_step(roofline, 0);
    }
    double seconds = tutti__roofline_seconds(roofline, "slice");
    tutti__roofline_close(roofline);
    tutti_session_close(session);
    return seconds;
}
