/* socket.c: a plain connection between two ranks. */
#define _GNU_SOURCE
#include "bench/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"

static tutti_status failed(const char *what)
{
    return tutti_fail(TUTTI_IO, "%s on loopback: %s", what, strerror(errno));
}

static tutti_status listen_here(int *ret_listener, int32_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        tutti_status status = failed("cannot listen");
        if (listener >= 0)
            close(listener);
        return status;
    }
    *ret_listener = listener;
    *ret_port = ntohs(address.sin_port);
    return TUTTI_OK;
}

tutti_status tutti__bench_socket(tutti_comm *comm, int *ret_descriptor)
{
    int rank = tutti_comm_rank(comm), listener = -1, descriptor = -1, yes = 1;
    int32_t port = 0;
    if (rank == 0)
        TUTTI_TRY(listen_here(&listener, &port));
    TUTTI_TRY(tutti_comm_broadcast(comm, &port, 1, TUTTI_I32, 0, NULL));
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (rank == 1) {
        descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (descriptor < 0 || connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0)
            return failed("cannot connect");
    }
    if (rank == 0) {
        descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        close(listener);
    }
    if (descriptor >= 0)
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    *ret_descriptor = descriptor;
    return TUTTI_OK;
}

static tutti_status move(int descriptor, bool out, char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t done = out ? send(descriptor, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                           : recv(descriptor, data, bytes, MSG_DONTWAIT);
        if (done == 0 || (done < 0 && errno != EAGAIN && errno != EINTR))
            return failed("a connection broke");
        data += done > 0 ? done : 0;
        bytes -= done > 0 ? (size_t)done : 0;
    }
    return TUTTI_OK;
}

tutti_status tutti__bench_round_trip(tutti_comm *comm, int descriptor, void *data, size_t bytes)
{
    bool first = tutti_comm_rank(comm) == 0;
    if (descriptor < 0)
        return TUTTI_OK;
    TUTTI_TRY(move(descriptor, first, data, bytes));
    return move(descriptor, !first, data, bytes);
}
