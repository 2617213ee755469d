/* socket.h: what the system's sockets can do by themselves, beside collectives over them. */
#ifndef TUTTI_BENCH_SOCKET_H
#define TUTTI_BENCH_SOCKET_H

#include "tutti/comm.h"

/* A connection of its own on loopback between ranks 0 and 1, which must be on one machine; -1 on
 * the others. Collective. Close it with close. */
tutti_status tutti__bench_socket(tutti_comm *comm, int *ret_descriptor);
/* `bytes` there and back by ranks 0 and 1, which look again and again for what comes; nothing on
 * the others. */
tutti_status tutti__bench_round_trip(tutti_comm *comm, int descriptor, void *data, size_t bytes);

#endif
