/* interface.c: see interface.h. */
#include "cluster/interface.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/params.h"

static tutti_param interface_param =
    TUTTI_PARAM("IFACE", "", "network interface to listen at and to connect from, such as eth0");

const char *tutti__interface_name(void)
{
    return tutti__param_text(&interface_param);
}

/* ---- addresses ---- */

static int family_of(const tutti_address *address)
{
    return ((const struct sockaddr *)(const void *)address->bytes)->sa_family;
}

/* False for what is down, or has no address of the internet. */
static bool address_of(const struct ifaddrs *each, tutti_address *ret_address)
{
    if (each->ifa_addr == NULL || (each->ifa_flags & IFF_UP) == 0)
        return false;
    size_t size = each->ifa_addr->sa_family == AF_INET    ? sizeof(struct sockaddr_in)
                  : each->ifa_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                          : 0;
    *ret_address = (tutti_address){.size = (uint32_t)size};
    memcpy(ret_address->bytes, each->ifa_addr, size);
    return size > 0;
}

/* Without regard to the port. */
static bool same_address(const tutti_address *a, const tutti_address *b)
{
    if (family_of(a) != family_of(b))
        return false;
    if (family_of(a) == AF_INET)
        return ((const struct sockaddr_in *)(const void *)a->bytes)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)b->bytes)->sin_addr.s_addr;
    return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)(const void *)a->bytes)->sin6_addr,
                              &((const struct sockaddr_in6 *)(const void *)b->bytes)->sin6_addr);
}

/* The lower the better: IPv6's first address is often only good on its own link. */
static int rank_address(const tutti_address *address)
{
    if (family_of(address) == AF_INET)
        return 0;
    const struct sockaddr_in6 *in6 = (const void *)address->bytes;
    return IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) ? 2 : 1;
}

/* ---- the interface's ---- */

/* Its best address, of `family` unless that is AF_UNSPEC. */
static bool find_best(const struct ifaddrs *list, const char *name, int family,
                      tutti_address *ret_address)
{
    tutti_address address;
    bool found = false;
    for (const struct ifaddrs *each = list; each != NULL; each = each->ifa_next) {
        if (strcmp(each->ifa_name, name) != 0 || !address_of(each, &address) ||
            (family != AF_UNSPEC && family_of(&address) != family))
            continue;
        if (!found || rank_address(&address) < rank_address(ret_address))
            *ret_address = address;
        found = true;
    }
    return found;
}

/* The interface that has this very address; NULL: none of this machine's. */
static const char *find_holder(const struct ifaddrs *list, const tutti_address *wanted)
{
    tutti_address address;
    for (const struct ifaddrs *each = list; each != NULL; each = each->ifa_next)
        if (address_of(each, &address) && same_address(&address, wanted))
            return each->ifa_name;
    return NULL;
}

static bool listed_before(const struct ifaddrs *list, const struct ifaddrs *end)
{
    tutti_address address;
    for (; list != end; list = list->ifa_next)
        if (strcmp(list->ifa_name, end->ifa_name) == 0 && address_of(list, &address))
            return true;
    return false;
}

static tutti_status fail_unknown(const struct ifaddrs *list, const char *name)
{
    char names[300] = "";
    tutti_address address;
    for (const struct ifaddrs *each = list; each != NULL; each = each->ifa_next) {
        size_t used = strlen(names);
        if (address_of(each, &address) && !listed_before(list, each))
            snprintf(names + used, sizeof names - used, " %s", each->ifa_name);
    }
    return tutti_fail(TUTTI_NOT_FOUND,
                      "TUTTI_IFACE is '%s', but no interface of that name is up and has an "
                      "address; there are:%s",
                      name, names);
}

/* ---- choosing ---- */

static tutti_status fail_holder(const char *name, const char *holder, const tutti_address *meeting)
{
    char text[64];
    tutti__address_text(meeting, text, sizeof text);
    return tutti_fail(TUTTI_INVALID,
                      "TUTTI_IFACE is '%s', but the others look for rank 0 at %s, which is the "
                      "address of '%s': set TUTTI_IFACE=%s, or give all ranks an address of '%s'",
                      name, text, holder, holder, name);
}

static tutti_status fail_family(const char *name, const tutti_address *meeting)
{
    char text[64];
    tutti__address_text(meeting, text, sizeof text);
    return tutti_fail(TUTTI_INVALID,
                      "TUTTI_IFACE is '%s', which has no IPv%d address, but the others look for "
                      "rank 0 at %s: name another interface, or give all ranks an address of '%s'",
                      name, family_of(meeting) == AF_INET6 ? 6 : 4, text, name);
}

/* Rank 0's: it listens at the address by which it is looked for, if that is one of this machine's;
 * it need not be, behind a router that translates addresses. A host's own name may stand for
 * loopback on that host, which says nothing of where the others look. */
static tutti_status pick_own(const struct ifaddrs *list, const char *name,
                             const tutti_address *meeting, size_t count, tutti_address *ret_address)
{
    const tutti_address *elsewhere = NULL, *outside = NULL;
    for (size_t i = 0; i < count; i++) {
        if (tutti__address_loopback(&meeting[i]))
            continue;
        const char *holder = find_holder(list, &meeting[i]);
        if (holder != NULL && strcmp(holder, name) == 0) {
            *ret_address = meeting[i];
            return TUTTI_OK;
        }
        *(holder != NULL ? &elsewhere : &outside) = &meeting[i];
    }
    if (elsewhere != NULL)
        return fail_holder(name, find_holder(list, elsewhere), elsewhere);
    if (outside != NULL && !find_best(list, name, family_of(outside), ret_address))
        return fail_family(name, outside);
    return TUTTI_OK;
}

tutti_status tutti__interface_pick(const struct ifaddrs *list, const char *name,
                                   const tutti_address *meeting, size_t count, bool own,
                                   tutti_address *ret_address)
{
    if (!find_best(list, name, AF_UNSPEC, ret_address))
        return fail_unknown(list, name);
    if (tutti__address_loopback(ret_address))
        return tutti_fail(TUTTI_INVALID,
                          "TUTTI_IFACE is '%s', the loopback, which no other machine reaches, but "
                          "rank 0 is on the network: name the interface that leads there, or "
                          "unset it",
                          name);
    if (own)
        return pick_own(list, name, meeting, count, ret_address);
    for (size_t i = 0; i < count; i++)
        if (!tutti__address_loopback(&meeting[i]) &&
            find_best(list, name, family_of(&meeting[i]), ret_address))
            break;
    return TUTTI_OK;
}

static tutti_status list_addresses(struct ifaddrs **ret_list)
{
    if (getifaddrs(ret_list) != 0)
        return tutti_fail(TUTTI_IO, "the interfaces of this machine cannot be listed");
    return TUTTI_OK;
}

tutti_status tutti__interface_check(void)
{
    const char *name = tutti__interface_name();
    struct ifaddrs *list = NULL;
    tutti_address address;
    if (*name == '\0')
        return TUTTI_OK;
    TUTTI_TRY(list_addresses(&list));
    tutti_status status =
        find_best(list, name, AF_UNSPEC, &address) ? TUTTI_OK : fail_unknown(list, name);
    freeifaddrs(list);
    return status;
}

tutti_status tutti__interface_for(const tutti_address *meeting, size_t count, bool own,
                                  tutti_address *ret_address)
{
    struct ifaddrs *list = NULL;
    TUTTI_TRY(list_addresses(&list));
    tutti_status status =
        tutti__interface_pick(list, tutti__interface_name(), meeting, count, own, ret_address);
    freeifaddrs(list);
    return status;
}

tutti_status tutti__interface_towards(const tutti_address *to, tutti_address *ret_address,
                                      bool *ret_given)
{
    const char *name = tutti__interface_name();
    struct ifaddrs *list = NULL;
    *ret_given = false;
    if (*name == '\0' || tutti__address_loopback(to))
        return TUTTI_OK;
    TUTTI_TRY(list_addresses(&list));
    *ret_given = find_best(list, name, family_of(to), ret_address);
    tutti_address any;
    bool known = *ret_given || find_best(list, name, AF_UNSPEC, &any);
    tutti_status status = known ? TUTTI_OK : fail_unknown(list, name);
    freeifaddrs(list);
    return status;
}
