/* replay.h: what all ranks would do, put into the order of time. */
#ifndef TUTTI_COMM_SIM_REPLAY_H
#define TUTTI_COMM_SIM_REPLAY_H

#include "comm/sim/links.h"
#include "comm/sim/trace.h"

/* `traces` and `begins` (seconds, when a rank starts) are for all ranks of the network. */
tutti_status tutti__sim_replay(tutti_sim_links *links, const tutti_sim_trace *traces,
                               const double *begins, double *ret_end);

#endif
