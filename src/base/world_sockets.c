/* world_sockets.c: the real world's sockets: TCP that never blocks. */
#define _GNU_SOURCE
#include "base/world_sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

_Static_assert(sizeof(struct sockaddr_storage) <= sizeof((tutti_address){0}.bytes),
               "an address of any family fits");

static const struct sockaddr *raw(const tutti_address *address)
{
    return (const struct sockaddr *)(const void *)address->bytes;
}

/* An IPv4 address that an IPv6 socket saw is written as IPv4. */
void tutti__address_text(const tutti_address *address, char *ret_text, size_t size)
{
    if (raw(address)->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)address->bytes;
        const uint8_t *last = in6->sin6_addr.s6_addr + 12;
        if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
            snprintf(ret_text, size, "%d.%d.%d.%d", last[0], last[1], last[2], last[3]);
            return;
        }
    }
    if (getnameinfo(raw(address), address->size, ret_text, (socklen_t)size, NULL, 0,
                    NI_NUMERICHOST) != 0)
        snprintf(ret_text, size, "?");
}

int tutti__address_port(const tutti_address *address)
{
    if (raw(address)->sa_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)address->bytes)->sin_port);
    if (raw(address)->sa_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)address->bytes)->sin6_port);
    return 0;
}

bool tutti__address_loopback(const tutti_address *address)
{
    if (raw(address)->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address->bytes;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    if (raw(address)->sa_family != AF_INET6)
        return false;
    const struct sockaddr_in6 *in6 = (const void *)address->bytes;
    return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) && in6->sin6_addr.s6_addr[12] == 127);
}

tutti_status tutti__real_resolve(void *self, const char *host, int port, size_t limit,
                                 tutti_address *ret_addresses, size_t *ret_count)
{
    TUTTI_UNUSED(self);
    char service[16];
    struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    if (host == NULL)
        hints.ai_flags |= AI_PASSIVE;
    snprintf(service, sizeof service, "%d", port);
    int error = getaddrinfo(host, service, &hints, &found);
    if (error != 0)
        return tutti_fail(TUTTI_NOT_FOUND, "the name '%s' does not resolve: %s",
                          host == NULL ? "" : host, gai_strerror(error));
    size_t count = 0;
    for (const struct addrinfo *each = found; each != NULL && count < limit; each = each->ai_next)
        if (each->ai_addrlen <= sizeof ret_addresses->bytes) {
            memset(&ret_addresses[count], 0, sizeof ret_addresses[count]);
            memcpy(ret_addresses[count].bytes, each->ai_addr, each->ai_addrlen);
            ret_addresses[count++].size = each->ai_addrlen;
        }
    freeaddrinfo(found);
    *ret_count = count;
    return TUTTI_OK;
}

static int new_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return fd >= 0 ? fd : -errno;
}

/* Small messages are sent at once; keep-alive is for half-open connections that nobody writes to.
 */
static void tune(int fd)
{
    int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

tutti_status tutti__real_listen(void *self, const tutti_address *at, int *ret_socket, int *ret_port)
{
    TUTTI_UNUSED(self);
    char text[64];
    int yes = 1, no = 0, port = tutti__address_port(at), error = 0;
    tutti__address_text(at, text, sizeof text);
    int fd = new_socket(raw(at)->sa_family);
    if (fd < 0)
        return tutti_fail(TUTTI_IO, "cannot make a socket: %s", strerror(-fd));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (raw(at)->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    tutti_address bound = {.size = sizeof bound.bytes};
    socklen_t size = sizeof bound.bytes;
    if (bind(fd, raw(at), at->size) != 0 || listen(fd, 4096) != 0 ||
        getsockname(fd, (struct sockaddr *)(void *)bound.bytes, &size) != 0)
        error = errno;
    if (error != 0) {
        close(fd);
        return tutti_fail(error == EADDRINUSE ? TUTTI_EXISTS : TUTTI_IO,
                          "cannot listen at %s port %d: %s", text, port, strerror(error));
    }
    *ret_socket = fd;
    *ret_port = tutti__address_port(&bound);
    return TUTTI_OK;
}

int tutti__real_accept(void *self, int listener, tutti_address *ret_from)
{
    TUTTI_UNUSED(self);
    socklen_t size = sizeof ret_from->bytes;
    int fd = accept4(listener, (struct sockaddr *)(void *)ret_from->bytes, &size,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return -errno;
    ret_from->size = size;
    tune(fd);
    return fd;
}

int tutti__real_connect(void *self, const tutti_address *to, const tutti_address *from)
{
    TUTTI_UNUSED(self);
    int fd = new_socket(raw(to)->sa_family), error = 0;
    if (fd < 0)
        return fd;
    tune(fd);
    if (from != NULL && bind(fd, raw(from), from->size) != 0)
        error = errno;
    if (error == 0 && connect(fd, raw(to), to->size) != 0 && errno != EINPROGRESS)
        error = errno;
    if (error != 0)
        close(fd);
    return error == 0 ? fd : -error;
}

int tutti__real_connected(void *self, int socket)
{
    TUTTI_UNUSED(self);
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        return -errno;
    return -error;
}

int64_t tutti__real_send(void *self, int socket, const void *data, size_t size)
{
    TUTTI_UNUSED(self);
    ssize_t done;
    do
        done = send(socket, data, size, MSG_NOSIGNAL);
    while (done < 0 && errno == EINTR);
    return done >= 0 ? done : -errno;
}

int64_t tutti__real_receive(void *self, int socket, void *data, size_t size)
{
    TUTTI_UNUSED(self);
    ssize_t done;
    do
        done = recv(socket, data, size, 0);
    while (done < 0 && errno == EINTR);
    return done >= 0 ? done : -errno;
}

static int run_poll(struct pollfd *polls, tutti_wait *waits, size_t count, int64_t timeout_ns)
{
    for (size_t i = 0; i < count; i++) {
        int wants = waits[i].wants;
        polls[i] = (struct pollfd){.fd = waits[i].socket,
                                   .events = (short)((wants & TUTTI_WAIT_READ ? POLLIN : 0) |
                                                     (wants & TUTTI_WAIT_WRITE ? POLLOUT : 0))};
    }
    struct timespec limit = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
    int came = ppoll(polls, count, timeout_ns == TUTTI_NO_DEADLINE ? NULL : &limit, NULL);
    if (came < 0)
        return errno == EINTR ? 0 : -errno;
    for (size_t i = 0; i < count; i++) {
        short events = polls[i].revents;
        waits[i].ret_came = (events & POLLIN ? TUTTI_WAIT_READ : 0) |
                            (events & POLLOUT ? TUTTI_WAIT_WRITE : 0) |
                            (events & (POLLERR | POLLHUP | POLLNVAL) ? TUTTI_WAIT_END : 0);
    }
    return came;
}

int tutti__real_wait(void *self, tutti_wait *waits, size_t count, int64_t timeout_ns)
{
    TUTTI_UNUSED(self);
    struct pollfd few[64], *polls = few;
    if (timeout_ns < 0)
        timeout_ns = 0;
    if (count > TUTTI_COUNT(few) && (polls = malloc(count * sizeof *polls)) == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        waits[i].ret_came = 0;
    int came = run_poll(polls, waits, count, timeout_ns);
    if (polls != few)
        free(polls);
    return came;
}

void tutti__real_end_sending(void *self, int socket)
{
    TUTTI_UNUSED(self);
    shutdown(socket, SHUT_WR);
}

void tutti__real_close_socket(void *self, int socket)
{
    TUTTI_UNUSED(self);
    close(socket);
}
