/* links.h: the simulator's network: when a message arrives that is sent now. */
#ifndef TUTTI_COMM_SIM_LINKS_H
#define TUTTI_COMM_SIM_LINKS_H

#include "comm/sim/sim.h"

typedef struct tutti_sim_link {
    double free_at, busy; /* seconds */
    float slow;           /* factor */
} tutti_sim_link;

typedef struct tutti_sim_links {
    tutti_network network;
    int hosts, switches, lanes;
    /* [ranks] out and in within a machine; [hosts] out and in; [switches, lanes] up and down. */
    tutti_sim_link *out, *in, *card_out, *card_in, *up, *down;
    float *slow; /* [ranks] */
    int *host;   /* [ranks] */
} tutti_sim_links;

tutti_status tutti__sim_links_create(const tutti_network *network, tutti_sim_links *ret_links);
void tutti__sim_links_free(tutti_sim_links *links);
/* The machine of a rank. */
int tutti__sim_links_host(const tutti_sim_links *links, int rank);
/* Sends must come in the order of time. *ret_left: the sender's memory is free; returns when the
 * receiver has it all. `at` is after the sender's work. */
double tutti__sim_links_send(tutti_sim_links *links, int from, int to, double bytes, double at,
                             double *ret_left);
/* Seconds of work of the sender for a message. */
double tutti__sim_links_overhead(const tutti_sim_links *links, int from, int to);
/* Time in use of the busiest link between machines. */
double tutti__sim_links_busiest(const tutti_sim_links *links);

#endif
