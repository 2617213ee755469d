/* links.c: links that carry one message at a time. */
#include "comm/sim/links.h"

#include <math.h>
#include <stdlib.h>

int tutti__sim_links_host(const tutti_sim_links *links, int rank)
{
    return links->host[rank];
}

static int switch_of(const tutti_sim_links *links, int host)
{
    return links->network.switch_hosts > 0 ? host / links->network.switch_hosts : 0;
}

void tutti__sim_links_free(tutti_sim_links *links)
{
    free(links->out);
    free(links->slow);
    free(links->host);
    *links = (tutti_sim_links){0};
}

/* Stragglers stand in the middle of equal parts of the ranks. */
static void slow_down(tutti_sim_links *links)
{
    const tutti_network *n = &links->network;
    for (int r = 0; r < n->ranks; r++)
        links->slow[r] = 1;
    for (int i = 0; i < n->stragglers && n->slowdown > 0; i++) {
        int rank = (int)(((int64_t)2 * i + 1) * n->ranks / (2 * (int64_t)n->stragglers));
        int host = tutti__sim_links_host(links, rank);
        links->slow[rank] = (float)n->slowdown;
        links->out[rank].slow = links->in[rank].slow = (float)n->slowdown;
        links->card_out[host].slow = links->card_in[host].slow = (float)n->slowdown;
    }
}

tutti_status tutti__sim_links_create(const tutti_network *network, tutti_sim_links *ret_links)
{
    tutti_sim_links links = {.network = *network};
    if (network->ranks < 1 || network->ranks > TUTTI_SIM_RANKS || network->hosts > network->ranks)
        return tutti_fail(TUTTI_INVALID, "%d ranks on %d machines; the simulator takes 1 to %d",
                          network->ranks, network->hosts, TUTTI_SIM_RANKS);
    links.hosts = network->hosts > 0 ? network->hosts : network->ranks;
    links.switches = switch_of(&links, links.hosts - 1) + 1;
    double full = network->oversubscription > 0 ? network->oversubscription : 1;
    links.lanes = (int)fmax(1, round(network->switch_hosts / full));
    size_t ranks = (size_t)network->ranks, hosts = (size_t)links.hosts;
    size_t switches = (size_t)links.switches * (size_t)links.lanes,
           count = 2 * (ranks + hosts + switches);
    links.out = calloc(count, sizeof *links.out);
    links.slow = calloc(ranks, sizeof *links.slow);
    links.host = calloc(ranks, sizeof *links.host);
    if (!links.out || !links.slow || !links.host) {
        tutti__sim_links_free(&links);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu links", count);
    }
    for (size_t i = 0; i < count; i++)
        links.out[i].slow = 1;
    links.in = links.out + ranks;
    links.card_out = links.in + ranks;
    links.card_in = links.card_out + hosts;
    links.up = links.card_in + hosts;
    links.down = links.up + switches;
    for (int r = 0; r < network->ranks; r++)
        links.host[r] = (int)((int64_t)r * links.hosts / network->ranks);
    slow_down(&links);
    *ret_links = links;
    return TUTTI_OK;
}

/* Enters a link as soon as it is free; *end is when the last byte has passed all links so far. */
static double pass(tutti_sim_link *link, double at, double seconds, double *end)
{
    double start = fmax(at, link->free_at);
    seconds *= link->slow;
    link->free_at = start + seconds;
    link->busy += seconds;
    *end = fmax(*end, link->free_at);
    return start;
}

static tutti_sim_link *free_lane(const tutti_sim_links *links, tutti_sim_link *all, int number)
{
    tutti_sim_link *lanes = all + (size_t)number * (size_t)links->lanes, *first = lanes;
    for (int i = 1; i < links->lanes; i++)
        first = lanes[i].free_at < first->free_at ? &lanes[i] : first;
    return first;
}

double tutti__sim_links_overhead(const tutti_sim_links *links, int from, int to)
{
    const tutti_network *n = &links->network;
    bool near = tutti__sim_links_host(links, from) == tutti__sim_links_host(links, to);
    return n->alpha[near ? TUTTI_LINK_WITHIN : TUTTI_LINK_BETWEEN] * n->overhead *
           links->slow[from];
}

double tutti__sim_links_send(tutti_sim_links *links, int from, int to, double bytes, double at,
                             double *ret_left)
{
    const tutti_network *n = &links->network;
    int a = tutti__sim_links_host(links, from), b = tutti__sim_links_host(links, to);
    double end = at;
    if (a == b) {
        double seconds = tutti__network_time(n, TUTTI_LINK_WITHIN, bytes);
        at = pass(&links->out[from], at, seconds, &end);
        *ret_left = end;
        pass(&links->in[to], at, seconds, &end);
        return end + n->alpha[TUTTI_LINK_WITHIN] * (1 - n->overhead);
    }
    double seconds = tutti__network_time(n, TUTTI_LINK_BETWEEN, bytes);
    at = pass(&links->card_out[a], at, seconds, &end);
    *ret_left = end;
    if (switch_of(links, a) != switch_of(links, b)) {
        at = pass(free_lane(links, links->up, switch_of(links, a)), at, seconds, &end);
        at = pass(free_lane(links, links->down, switch_of(links, b)), at, seconds, &end);
    }
    pass(&links->card_in[b], at, seconds, &end);
    return end + n->alpha[TUTTI_LINK_BETWEEN] * (1 - n->overhead);
}

double tutti__sim_links_busiest(const tutti_sim_links *links)
{
    size_t count = 2 * ((size_t)links->hosts + (size_t)links->switches * (size_t)links->lanes);
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, links->card_out[i].busy);
    return most;
}
