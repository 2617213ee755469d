/* interface.h: the network interface that a rank should use: TUTTI_IFACE. */
#ifndef TUTTI_CLUSTER_INTERFACE_H
#define TUTTI_CLUSTER_INTERFACE_H

#include "base/world.h"

struct ifaddrs;

const char *tutti__interface_name(void); /* "": not set, any will do */
/* Fails for a name that no interface has, with the names that there are. */
tutti_status tutti__interface_check(void);
/* The address at which this rank listens and is reached, when rank 0 is at one of `meeting` (count
 * 0: that is not known): of its family where the interface has one, IPv4 otherwise. Where `own`,
 * this is rank 0, and the interface must be the one at which the others look for it. */
tutti_status tutti__interface_for(const tutti_address *meeting, size_t count, bool own,
                                  tutti_address *ret_address);
/* From which address to connect to `to`; *ret_given: the interface is set, and has one of that
 * family. Within this machine, on loopback, none is needed. */
tutti_status tutti__interface_towards(const tutti_address *to, tutti_address *ret_address,
                                      bool *ret_given);

/* As tutti__interface_for, among the addresses of `list`, for the interface `name`. */
tutti_status tutti__interface_pick(const struct ifaddrs *list, const char *name,
                                   const tutti_address *meeting, size_t count, bool own,
                                   tutti_address *ret_address);

#endif
