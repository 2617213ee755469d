#include "cluster/address_publisher.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "cluster/place.h"

/* Where a rank on machine `machine` says that rank 0 is, which offers these; "" when it fails. */
static const char *place(uint64_t machine, const char *offers)
{
    static char meeting[300];
    char text[TUTTI_ADDRESS_TEXT_BYTES];
    snprintf(text, sizeof text, "20001 %016" PRIx64 " %s", machine, offers);
    if (tutti__address_publisher_read(text, meeting, sizeof meeting) != TUTTI_OK)
        meeting[0] = '\0';
    return meeting;
}

TUTTI_TEST(herald_takes_the_address_of_a_network_that_both_are_in)
{
    uint64_t other = tutti__machine() + 1;
    const char *nobody = "no-such-host.invalid";
    char offers[200];
    snprintf(offers, sizeof offers, "%s 203.0.113.5 127.9.9.9 203.0.113.6", nobody);
    CHECK_STR(place(other, offers), "127.9.9.9:20001"); /* loopback is 127.0.0.0/8 */
    snprintf(offers, sizeof offers, "%s 127.0.0.1 203.0.113.5", nobody);
    CHECK_STR(place(other, offers), "203.0.113.5:20001"); /* what is ours is not rank 0's */
    snprintf(offers, sizeof offers, "%s 2001:db8::5", nobody);
    CHECK_STR(place(other, offers), "[2001:db8::5]:20001");
    snprintf(offers, sizeof offers, "%s 127.0.0.1", nobody);
    CHECK_STR(place(other, offers), "127.0.0.1:20001"); /* there is nothing else */
}

TUTTI_TEST(herald_takes_the_first_address_on_rank_0s_own_machine)
{
    CHECK_STR(place(tutti__machine(), "here 203.0.113.5 127.0.0.1"), "203.0.113.5:20001");
}

TUTTI_TEST(herald_says_what_it_cannot_read)
{
    char meeting[300];
    CHECK_STATUS(tutti__address_publisher_read("", meeting, sizeof meeting), TUTTI_CLOSED);
    CHECK_CONTAINS(tutti_error_message(), "rank 0 could not say where it is");
    CHECK_STR(place(1, "host"), "");
    CHECK_STATUS(tutti__address_publisher_read("0 1 host 203.0.113.5", meeting, sizeof meeting),
                 TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "0 1 host");
}

/* What one writes the other can read; a machine without a network has nothing to write. */
TUTTI_TEST(herald_reads_what_it_writes)
{
    char text[TUTTI_ADDRESS_TEXT_BYTES], meeting[300];
    tutti_status status = tutti__address_publisher_write(text);
    if (status == TUTTI_NOT_FOUND) {
        CHECK_CONTAINS(tutti_error_message(), "has no address that another one could reach");
        return;
    }
    CHECK_OK(status);
    CHECK_OK(tutti__address_publisher_read(text, meeting, sizeof meeting));
    CHECK(strstr(meeting, ":2") != NULL);
}
