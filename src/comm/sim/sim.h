/* sim.h: a collective on a cluster that is not at hand, event by event. The algorithms are the real
 * ones (trace.h says how); the network is a model:
 *
 *   - A message of n bytes costs its sender `overhead` alpha of computing, then crosses links, each
 *     n beta (of that size) long, head first (a link is entered as soon as the one before was), and
 * arrives alpha (1 - overhead) after its last byte has left the slowest of them.
 *   - A link carries one message at a time, in the order in which they come to it.
 *   - Within a machine the links are the sender's and the receiver's own. Between machines: the
 *     sender's network card, for another switch this switch's uplink and that one's downlink, the
 *     receiver's card. Uplinks and downlinks are lanes as fast as a card, as many as a switch has
 *     machines, divided by `oversubscription` (at least one); a message takes the lane that is free
 *     first. Above the switches nothing is ever full.
 *   - A straggler computes, and sends and receives, `slowdown` times slower.
 *   - Ranks begin late by a random time of mean `jitter` (exponential). */
#ifndef TUTTI_COMM_SIM_SIM_H
#define TUTTI_COMM_SIM_SIM_H

#include "base/status.h"
#include "tutti/comm.h"

typedef struct tutti_network {
    int ranks, hosts;               /* spread evenly; 0 hosts: one for each rank */
    double alpha[TUTTI_LINK_COUNT]; /* seconds */
    double beta[TUTTI_LINK_COUNT];  /* seconds a byte */
    /* The same by the size of a message, at those of the cost model; zeros: one for all. */
    double beta_by_size[TUTTI_LINK_COUNT][TUTTI_COMM_SIZES];
    double gamma;                      /* seconds a byte folded or copied */
    double phase;                      /* ranks of a machine wait for each other once; 0: alpha */
    double overhead;                   /* share of alpha that is the sender's work, 0 to 1 */
    int switch_hosts;                  /* machines below one switch; 0: all */
    double oversubscription, slowdown; /* 0: 1 */
    int stragglers;                    /* how many ranks, evenly spread */
    double jitter;
    uint64_t seed;
} tutti_network;

typedef struct tutti_simulated {
    double seconds;    /* from the last rank's begin until the last rank's end */
    double total;      /* from 0 until the last rank's end */
    uint64_t messages; /* sent by all */
    double busiest;    /* share of the time that the busiest link between machines was in use */
} tutti_simulated;

enum { TUTTI_SIM_RANKS = 100000 };

/* `bytes` as tutti_comm_predict takes them. `limit`: most messages; TUTTI_TOO_LARGE says how many
 * there would be. TUTTI_UNSUPPORTED for algorithms without messages (direct, native) or with
 * options of their own. */
tutti_status tutti__simulate(const tutti_network *network, const char *operation,
                             const char *algorithm, int64_t bytes, uint64_t limit,
                             tutti_simulated *ret);
/* The cost model's constants for the same network. */
tutti_comm_cost tutti__network_cost(const tutti_network *network);
/* Seconds that a message is on a link. */
double tutti__network_time(const tutti_network *network, tutti_comm_link link, double bytes);

#endif
