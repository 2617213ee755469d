/* interface_test.c: which address of an interface is a rank's. */
#include "cluster/interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"

static tutti_address address(const char *text)
{
    tutti_address all;
    size_t count;
    const tutti_world *world = tutti__world();
    CHECK_OK(world->resolve(world->self, text, 4500, 1, &all, &count));
    return all;
}

enum { HELD = 7 };

/* A machine with two cables, of which one has both families, link-local first. */
typedef struct machine {
    tutti_address addresses[HELD];
    struct ifaddrs list[HELD];
} machine;

static void build_machine(machine *m)
{
    static const char *const held[HELD][2] = {
        {"lo", "127.0.0.1"}, {"veth0", "10.79.0.1"}, {"eth0", "10.78.0.1"}, {"lo", "::1"},
        {"eth0", "fe80::1"}, {"eth0", "fd78::1"},    {"tun0", "10.80.0.1"},
    };
    memset(m, 0, sizeof *m);
    for (int i = 0; i < HELD; i++) {
        m->addresses[i] = address(held[i][1]);
        m->list[i] = (struct ifaddrs){.ifa_next = i + 1 < HELD ? &m->list[i + 1] : NULL,
                                      .ifa_name = (char *)(uintptr_t)held[i][0],
                                      .ifa_flags = IFF_UP,
                                      .ifa_addr = (void *)m->addresses[i].bytes};
    }
}

/* The address as text, or the error. */
static const char *pick(const char *name, const char *meeting, bool own)
{
    static char text[64];
    machine m;
    tutti_address chosen, at;
    build_machine(&m);
    if (meeting != NULL)
        at = address(meeting);
    if (tutti__interface_pick(m.list, name, &at, meeting != NULL, own, &chosen) != TUTTI_OK)
        return tutti_error_message();
    tutti__address_text(&chosen, text, sizeof text);
    return text;
}

TUTTI_TEST(interface_of_the_family_of_the_meeting)
{
    CHECK_STR(pick("eth0", "10.78.0.9", false), "10.78.0.1");
    CHECK_STR(pick("eth0", "fd78::9", false), "fd78::1");
    CHECK_STR(pick("eth0", NULL, false), "10.78.0.1");
    CHECK_STR(pick("veth0", "fd78::9", false), "10.79.0.1"); /* it has no other */
}

TUTTI_TEST(interface_of_rank_zero_is_where_it_is_looked_for)
{
    CHECK_STR(pick("eth0", "10.78.0.1", true), "10.78.0.1");
    CHECK_STR(pick("eth0", "fd78::1", true), "fd78::1");
    CHECK_STR(pick("eth0", "203.0.113.5", true), "10.78.0.1"); /* translated on the way */
    CHECK_STR(pick("eth0", "127.0.1.1", true), "10.78.0.1");   /* its own name, as Debian has it */
    CHECK_CONTAINS(pick("eth0", "10.79.0.1", true),
                   "look for rank 0 at 10.79.0.1, which is the address of 'veth0': set "
                   "TUTTI_IFACE=veth0");
    CHECK_CONTAINS(pick("veth0", "fd99::1", true), "'veth0', which has no IPv6 address");
}

TUTTI_TEST(interface_that_does_not_do)
{
    CHECK_CONTAINS(pick("eth9", "10.78.0.1", false), "there are: lo veth0 eth0 tun0");
    CHECK_CONTAINS(pick("lo", "10.78.0.1", false), "TUTTI_IFACE is 'lo', the loopback");
}

TUTTI_TEST(interface_is_not_needed_on_loopback)
{
    tutti_address to = address("127.0.0.1"), from;
    bool given = true;
    setenv("TUTTI_IFACE", "lo", 1);
    CHECK_OK(tutti__interface_towards(&to, &from, &given));
    CHECK(!given);
    setenv("TUTTI_IFACE", "eth9999", 1);
    CHECK_STATUS(tutti__interface_check(), TUTTI_NOT_FOUND);
    unsetenv("TUTTI_IFACE");
    CHECK_OK(tutti__interface_check());
}
