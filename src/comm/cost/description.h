/* description.h: what a cluster's links cost, from a file (TUTTI_LINKS) in the place of a
 * measurement:
 *
 *     {"within":  {"alpha": "0.4us", "beta": "20GB/s"},
 *      "between": {"alpha": "15us",  "beta": {"64k": "8GB/s", "1m": "12GB/s"},
 *                  "lanes": {"count": 4, "start": "9us", "beta": "4GB/s", "gamma": "9GB/s"}},
 *      "gamma": "30GB/s", "phase": "0.3us"}
 *
 * Beta is a bandwidth or a time for a byte, one for all messages or by their size: each counts from
 * its size on, the first one below too. So are figures of lanes, which have the names that they
 * have in tutti_comm_lane and are those of one lane while `count` are at work; groups that have
 * another number of them do without. What a file does not say is assumed. */
#ifndef TUTTI_COMM_COST_DESCRIPTION_H
#define TUTTI_COMM_COST_DESCRIPTION_H

#include "tutti/comm.h"

/* Seconds, and seconds a byte; 0: not said. */
typedef struct tutti_description {
    double alpha[TUTTI_LINK_COUNT], beta[TUTTI_LINK_COUNT][TUTTI_COMM_SIZES], gamma, phase;
    int lanes[TUTTI_LINK_COUNT];
    tutti_comm_lane lane[TUTTI_LINK_COUNT];
} tutti_description;

tutti_status tutti__description_read(const char *path, tutti_description *ret);
/* Over what was assumed. */
void tutti__description_apply(const tutti_description *description, tutti_comm_cost *cost);
/* What a group has measured, of messages up to `most` bytes, as a file that can be read. */
tutti_status tutti__description_write(const tutti_comm_cost *cost, int64_t most, const char *path);

/* INVALID for what no link costs: `what` is for the message. `per_byte`: seconds a byte, which are
 * often meant as nanoseconds. */
tutti_status tutti__check_seconds(const char *what, bool per_byte, double seconds);
/* "20us", "0.8ns"; of a `bandwidth` also "10GB/s", "25Gbit/s", which gives seconds a byte. */
bool tutti__read_seconds(const char *text, bool bandwidth, double *ret);

/* What is taken for links of which nothing is known: of ranks that share memory, and of machines;
 * messages of 1 MiB. */
typedef struct tutti_assumed {
    double alpha, beta;
} tutti_assumed;
extern const tutti_assumed tutti__cost_assumed[TUTTI_LINK_COUNT];

#endif
