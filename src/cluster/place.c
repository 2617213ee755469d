/* place.c: machine, host and interface. */
#include "cluster/place.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/container.h"
#include "base/params.h"

static tutti_param machine_param =
    TUTTI_PARAM("MACHINE", "", "counts this process to another machine, for trials");
static tutti_param interface_param =
    TUTTI_PARAM("IFACE", "", "network interface to listen at and to connect from, such as eth0");

uint64_t tutti__machine(void)
{
    const tutti_world *world = tutti__world();
    uint64_t hash = tutti__hash_string(1, tutti__param_text(&machine_param));
    void *boot = NULL;
    size_t size;
    if (world->read_file(world->self, "/proc/sys/kernel/random/boot_id", 100, &boot, &size) ==
        TUTTI_OK)
        hash = tutti__hash_bytes(hash, boot, size);
    free(boot);
    struct stat shm;
    if (stat("/dev/shm", &shm) == 0)
        hash = tutti__hash_mix(hash, (uint64_t)shm.st_dev);
    return hash;
}

void tutti__host_name(char *ret_name, size_t size)
{
    if (gethostname(ret_name, size) != 0)
        snprintf(ret_name, size, "unknown");
    ret_name[size - 1] = '\0';
}

tutti_status tutti__allow_descriptors(int count)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)count + 512; /* files and channels of the program */
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return TUTTI_OK;
    if (limit.rlim_max < wanted)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "%d connections need %llu descriptors, but this process may open only "
                          "%llu; raise the limit: 'ulimit -n %llu', or nofile in "
                          "/etc/security/limits.conf",
                          count, (unsigned long long)wanted, (unsigned long long)limit.rlim_max,
                          (unsigned long long)wanted);
    limit.rlim_cur = wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
    return TUTTI_OK;
}

static size_t address_size(const struct ifaddrs *each)
{
    if (each->ifa_addr == NULL || (each->ifa_flags & IFF_UP) == 0)
        return 0;
    return each->ifa_addr->sa_family == AF_INET    ? sizeof(struct sockaddr_in)
           : each->ifa_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                   : 0;
}

/* IPv4 before IPv6, whose first address is often only good on its own link. */
static bool find_interface(const struct ifaddrs *list, const char *name, tutti_address *ret)
{
    for (int pass = 0; pass < 2; pass++)
        for (const struct ifaddrs *each = list; each != NULL; each = each->ifa_next) {
            size_t size = address_size(each);
            int family = pass == 0 ? AF_INET : AF_INET6;
            if (size == 0 || each->ifa_addr->sa_family != family ||
                strcmp(each->ifa_name, name) != 0)
                continue;
            *ret = (tutti_address){.size = (uint32_t)size};
            memcpy(ret->bytes, each->ifa_addr, size);
            return true;
        }
    return false;
}

static tutti_status fail_interface(const struct ifaddrs *list, const char *name)
{
    char names[300] = "";
    for (const struct ifaddrs *each = list; each != NULL; each = each->ifa_next) {
        size_t used = strlen(names);
        if (address_size(each) > 0 && strstr(names, each->ifa_name) == NULL)
            snprintf(names + used, sizeof names - used, " %s", each->ifa_name);
    }
    return tutti_fail(TUTTI_NOT_FOUND,
                      "TUTTI_IFACE is '%s', but no interface of that name is up and has an "
                      "address; there are:%s",
                      name, names);
}

tutti_status tutti__interface(tutti_address *ret_address, bool *ret_given)
{
    const char *name = tutti__param_text(&interface_param);
    struct ifaddrs *list = NULL;
    if (*name == '\0') {
        *ret_given = false;
        return TUTTI_OK;
    }
    if (getifaddrs(&list) != 0)
        return tutti_fail(TUTTI_IO, "the interfaces of this machine cannot be listed");
    bool found = find_interface(list, name, ret_address);
    tutti_status status = found ? TUTTI_OK : fail_interface(list, name);
    freeifaddrs(list);
    if (found)
        *ret_given = true;
    return status;
}
