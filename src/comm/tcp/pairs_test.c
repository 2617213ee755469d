/* pairs_test.c: what is told of a connection. */
#define _GNU_SOURCE
#include "comm/tcp/pairs.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/test.h"

static void connect_two(int *ret_a, int *ret_b)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    *ret_a = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    CHECK(connect(*ret_a, (struct sockaddr *)&address, sizeof address) == 0);
    *ret_b = accept(listener, NULL, NULL);
    CHECK(*ret_b >= 0);
    close(listener);
}

static bool is_owed(int descriptor)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    CHECK(getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) == 0);
    return info.tcpi_unacked > 0;
}

/* A byte after a pause, which the other end does not acknowledge at once: it was heard long ago,
 * and owes nothing since long ago. */
TUTTI_TEST(comm_tcp_what_is_sent_after_a_pause_is_not_owed_since_before_it)
{
    enum { APART_NS = 1000000000, PAUSE_US = 300000, SHORT_NS = 100000000 };
    tutti_tcp_looks looks = {0};
    int a, b, no = 0, owed = 0;
    char byte = 0;
    connect_two(&a, &b);
    CHECK_INT(tutti__tcp_owed(a, APART_NS, &looks), 0);
    for (int i = 0; i < 10; i++) {
        usleep(i < 2 ? PAUSE_US : 1000);
        setsockopt(b, IPPROTO_TCP, TCP_QUICKACK, &no, sizeof no);
        CHECK(send(a, &byte, 1, 0) == 1);
        owed += is_owed(a);
        CHECK(tutti__tcp_owed(a, APART_NS, &looks) < SHORT_NS);
        CHECK(recv(b, &byte, 1, 0) == 1);
    }
    if (owed == 0)
        SKIP("the system acknowledges every byte at once");
    close(a);
    close(b);
}
