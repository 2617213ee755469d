/* derive.h: from times that were measured to the constants of the cost model. */
#ifndef TUTTI_COMM_COST_DERIVE_H
#define TUTTI_COMM_COST_DERIVE_H

#include "comm/comm.h"

/* What of the constants was measured. In doubt: so briefly that a time may be somebody else's work;
 * then one that no machine has is left as it was guessed. */
void tutti__cost_derive(const tutti_cost_times *times, bool in_doubt, const tutti_comm *comm,
                        tutti_comm_cost *cost);
/* Of messages only; what has to do with them becomes longer or shorter like one. */
void tutti__cost_derive_glance(const tutti_cost_times *times, const tutti_comm *comm,
                               tutti_comm_cost *cost);
/* Of all passes, figure by figure. */
tutti_cost_times tutti__cost_of_passes(const tutti_cost_thorough *thorough);

#endif
