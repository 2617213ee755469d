#include "cluster/lookup.h"

#include <stdatomic.h>

#include "base/test.h"

#define SECOND INT64_C(1000000000)

static _Atomic int answers;

static tutti_status slow_resolve(void *self, const char *host, int port, size_t limit,
                                 tutti_address *ret_addresses, size_t *ret_count)
{
    TUTTI_UNUSED(self);
    TUTTI_UNUSED(host);
    TUTTI_UNUSED(port);
    TUTTI_UNUSED(limit);
    TUTTI_UNUSED(ret_addresses);
    tutti__world()->sleep_ns(NULL, SECOND / 5);
    *ret_count = 0;
    atomic_fetch_add(&answers, 1);
    return TUTTI_OK;
}

TUTTI_TEST(lookup_gives_addresses_and_reasons)
{
    tutti_address addresses[TUTTI_LOOKUP_MOST];
    size_t count = 0;
    int64_t until = tutti__now_ns() + 10 * SECOND;
    CHECK_OK(tutti__lookup("127.0.0.1", 80, until, addresses, &count));
    CHECK_INT(count, 1);
    CHECK_OK(tutti__lookup("localhost", 80, until, addresses, &count));
    CHECK(count >= 1 && tutti__address_loopback(&addresses[0]));
    CHECK_INT(tutti__address_port(&addresses[0]), 80);
    CHECK_STATUS(tutti__lookup("no-such-host.invalid", 1, until, addresses, &count),
                 TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "no-such-host.invalid");
}

TUTTI_TEST(lookup_does_not_wait_for_a_slow_name_server)
{
    tutti_address addresses[TUTTI_LOOKUP_MOST];
    size_t count = 0;
    tutti_world slow = *tutti__world();
    slow.resolve = slow_resolve;
    tutti__world_replace(&slow);
    CHECK_STATUS(tutti__lookup("host", 1, tutti__now_ns() + SECOND / 50, addresses, &count),
                 TUTTI_DEADLINE);
    CHECK_CONTAINS(tutti_error_message(), "name server");
    CHECK_OK(tutti__lookup("host", 1, tutti__now_ns() + 10 * SECOND, addresses, &count));
    while (atomic_load(&answers) < 2) /* the first question is over too */
        tutti__world()->sleep_ns(NULL, SECOND / 100);
    tutti__world_replace(NULL);
}
