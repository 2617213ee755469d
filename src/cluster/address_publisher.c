/* address_publisher.c: see address_publisher.h. The text is "port machine name address ...", the
 * machine in hexadecimal.
 */
#include "cluster/address_publisher.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/container.h"
#include "cluster/cluster.h"
#include "cluster/heartbeat.h"
#include "cluster/interface.h"
#include "cluster/lookup.h"
#include "cluster/place.h"

enum { MOST_ADDRESSES = 8, PORTS_TO_TRY = 100 };

/* ---- addresses as bytes ---- */

typedef struct plain {
    int family;
    uint8_t bytes[16];
} plain;

static size_t size_of(int family)
{
    return family == AF_INET ? 4 : 16;
}

static bool read_socket_address(const struct sockaddr *from, plain *ret)
{
    if (from == NULL || (from->sa_family != AF_INET && from->sa_family != AF_INET6))
        return false;
    const void *bytes =
        from->sa_family == AF_INET
            ? (const void *)&((const struct sockaddr_in *)(const void *)from)->sin_addr
            : &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
    ret->family = from->sa_family;
    memcpy(ret->bytes, bytes, size_of(ret->family));
    return true;
}

static bool read_text(const char *text, plain *ret)
{
    ret->family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
    return inet_pton(ret->family, text, ret->bytes) == 1;
}

/* ---- rank 0's side ---- */

static tutti_status find_port(int *ret_port)
{
    for (int i = 0; i < PORTS_TO_TRY; i++) {
        char name[64];
        snprintf(name, sizeof name, "herald %d %" PRId64 " %d", (int)getpid(), tutti__now_ns(), i);
        *ret_port = tutti__derived_port(name);
        if (tutti__listener_free(*ret_port))
            return TUTTI_OK;
    }
    return tutti_fail(TUTTI_IO, "none of %d ports that were tried is free here", PORTS_TO_TRY);
}

/* Of every interface that is up, or of TUTTI_IFACE; not those that only its own machine or link
 * knows. */
static bool is_offered(const struct ifaddrs *each, plain *ret)
{
    const char *only = tutti__interface_name();
    if ((each->ifa_flags & IFF_UP) == 0 || (each->ifa_flags & IFF_LOOPBACK) != 0 ||
        !read_socket_address(each->ifa_addr, ret))
        return false;
    bool of_link =
        ret->family == AF_INET6 && ret->bytes[0] == 0xfe && (ret->bytes[1] & 0xc0) == 0x80;
    return !of_link && (*only == '\0' || strcmp(only, each->ifa_name) == 0);
}

tutti_status tutti__address_publisher_write(char ret_text[TUTTI_ADDRESS_TEXT_BYTES])
{
    char name[256], address[INET6_ADDRSTRLEN];
    struct ifaddrs *list = NULL;
    int port, count = 0;
    TUTTI_TRY(tutti__interface_check());
    TUTTI_TRY(find_port(&port));
    if (getifaddrs(&list) != 0)
        return tutti_fail(TUTTI_IO, "the interfaces of this machine cannot be listed");
    tutti__host_name(name, sizeof name);
    int used = snprintf(ret_text, TUTTI_ADDRESS_TEXT_BYTES, "%d %016" PRIx64 " %.200s", port,
                        tutti__machine(), name);
    for (const struct ifaddrs *each = list; each != NULL && count < MOST_ADDRESSES;
         each = each->ifa_next) {
        plain own;
        if (!is_offered(each, &own))
            continue;
        inet_ntop(own.family, own.bytes, address, sizeof address);
        used += snprintf(ret_text + used, TUTTI_ADDRESS_TEXT_BYTES - (size_t)used, " %s", address);
        count++;
    }
    freeifaddrs(list);
    if (count == 0)
        return tutti_fail(TUTTI_NOT_FOUND,
                          "rank 0's machine (%s) has no address that another one could reach",
                          name);
    return TUTTI_OK;
}

/* ---- the others' ---- */

/* OWN: bridges of containers have one and the same address on every machine. */
typedef enum nearness { OWN, NEAR, FAR } nearness;

static bool same_network(const plain *a, const plain *b, const plain *mask)
{
    for (size_t i = 0; i < size_of(a->family); i++)
        if (((a->bytes[i] ^ b->bytes[i]) & mask->bytes[i]) != 0)
            return false;
    return true;
}

static nearness near_to(const struct ifaddrs *list, const plain *address)
{
    nearness nearest = FAR;
    for (const struct ifaddrs *each = list; each != NULL; each = each->ifa_next) {
        plain own, mask;
        if ((each->ifa_flags & IFF_UP) == 0 || !read_socket_address(each->ifa_addr, &own) ||
            own.family != address->family)
            continue;
        if (memcmp(own.bytes, address->bytes, size_of(own.family)) == 0)
            return OWN;
        if (read_socket_address(each->ifa_netmask, &mask) && same_network(&own, address, &mask))
            nearest = NEAR;
    }
    return nearest;
}

/* Whether a name means another machine here. */
static bool is_elsewhere(const struct ifaddrs *list, const char *name)
{
    tutti_address found[TUTTI_LOOKUP_MOST];
    size_t count = 0;
    if (tutti__lookup(name, 1, tutti__now_ns() + INT64_C(3000000000), found, &count) != TUTTI_OK) {
        tutti__error_forget();
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        plain address;
        if (!read_socket_address((const void *)found[i].bytes, &address) ||
            near_to(list, &address) == OWN || tutti__address_loopback(&found[i]))
            return false;
    }
    return count > 0;
}

static const char *address_publisher_choose(const struct ifaddrs *list, const char *name, bool here,
                                            char (*addresses)[INET6_ADDRSTRLEN], int count)
{
    const char *other = NULL;
    for (int i = 0; i < count && !here; i++) {
        plain address;
        nearness how = read_text(addresses[i], &address) ? near_to(list, &address) : OWN;
        if (how == NEAR)
            return addresses[i];
        if (how == FAR && other == NULL)
            other = addresses[i];
    }
    if (here)
        return addresses[0];
    return is_elsewhere(list, name) ? name : other != NULL ? other : addresses[0];
}

tutti_status tutti__address_publisher_read(const char *text, char *ret_meeting, size_t size)
{
    char name[256], addresses[MOST_ADDRESSES][INET6_ADDRSTRLEN];
    struct ifaddrs *list = NULL;
    uint64_t machine;
    int port, at = 0, used, count = 0;
    if (sscanf(text, "%d %" SCNx64 " %255s%n", &port, &machine, name, &at) != 3)
        return tutti_fail(TUTTI_CLOSED,
                          "rank 0 could not say where it is; its own message says why");
    while (count < MOST_ADDRESSES && sscanf(text + at, " %45s%n", addresses[count], &used) == 1) {
        at += used;
        count++;
    }
    if (count == 0 || port < 1 || port > 65535)
        return tutti_fail(TUTTI_CORRUPT, "rank 0 says that it is at '%.100s'", text);
    if (getifaddrs(&list) != 0)
        return tutti_fail(TUTTI_IO, "the interfaces of this machine cannot be listed");
    const char *host =
        address_publisher_choose(list, name, machine == tutti__machine(), addresses, count);
    bool sixth = strchr(host, ':') != NULL;
    snprintf(ret_meeting, size, "%s%s%s:%d", sixth ? "[" : "", host, sixth ? "]" : "", port);
    freeifaddrs(list);
    return TUTTI_OK;
}
