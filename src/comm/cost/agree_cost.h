/* agree_cost.h: the cost of links, the same on all ranks. */
#ifndef TUTTI_COMM_COST_AGREE_COST_H
#define TUTTI_COMM_COST_AGREE_COST_H

#include "comm/comm.h"

/* The group goes by this from now on; collective. */
tutti_status tutti__cost_agree(tutti_comm *comm, tutti_comm_cost cost);
/* A few milliseconds, for what messages cost; collective. */
tutti_status tutti__cost_glance(tutti_comm *comm);

#endif
