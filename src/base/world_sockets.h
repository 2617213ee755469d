/* world_sockets.h: the real world's sockets; the slots of tutti_world say what they do. */
#ifndef TUTTI_BASE_WORLD_SOCKETS_H
#define TUTTI_BASE_WORLD_SOCKETS_H

#include "base/world.h"

tutti_status tutti__real_resolve(void *self, const char *host, int port, size_t limit,
                                 tutti_address *ret_addresses, size_t *ret_count);
tutti_status tutti__real_listen(void *self, const tutti_address *at, int *ret_socket,
                                int *ret_port);
int tutti__real_accept(void *self, int listener, tutti_address *ret_from);
int tutti__real_connect(void *self, const tutti_address *to, const tutti_address *from);
int tutti__real_connected(void *self, int socket);
int64_t tutti__real_send(void *self, int socket, const void *data, size_t size);
int64_t tutti__real_receive(void *self, int socket, void *data, size_t size);
int tutti__real_wait(void *self, tutti_wait *waits, size_t count, int64_t timeout_ns);
void tutti__real_end_sending(void *self, int socket);
void tutti__real_close_socket(void *self, int socket);

#endif
