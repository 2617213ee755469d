/* fill.c: predictions and simulations of every algorithm at every size. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plan/plan.h"
#include "comm/coll/coll.h"

void tutti__comm_plan_describe(const tutti_description *d, tutti_network *n)
{
    for (int link = 0; link < TUTTI_LINK_COUNT; link++) {
        const tutti_assumed *assumed = &tutti__cost_assumed[link];
        const double *beta = d->beta[link];
        n->alpha[link] = d->alpha[link] > 0 ? d->alpha[link] : assumed->alpha;
        n->beta[link] = beta[0] > 0 ? beta[TUTTI_COMM_AT_MIB] : assumed->beta;
        memcpy(n->beta_by_size[link], beta, sizeof n->beta_by_size[link]);
    }
    n->gamma = d->gamma > 0 ? d->gamma : n->gamma;
    n->phase = d->phase;
}

/* Shared memory of the machines of today, where no other figure is given. */
tutti_comm_cost tutti__comm_plan_cost(const tutti_network *n)
{
    tutti_comm_cost cost = tutti__network_cost(n);
    cost.phase = n->phase > 0 ? n->phase : 0.5e-6;
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        cost.copy[i] = 0.12e-9;
    return cost;
}

int64_t tutti__comm_plan_block(const tutti_comm_plan *plan, int64_t bytes)
{
    static const char *const blocks[] = {"all_gather", "gather", "scatter", "all_to_all"};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (strcmp(plan->operation, blocks[i]) == 0)
            return bytes / plan->network.ranks;
    return bytes;
}

/* Shared memory is within one machine; those of several machines have a use where ranks share one.
 */
static bool fill_fits(const tutti_comm_plan *plan, const char *name)
{
    const tutti_coll *coll = tutti__coll_find(name);
    return !coll->special && (!coll->shared || plan->cost.hosts == 1) &&
           (!coll->machines || (plan->cost.hosts > 1 && plan->cost.hosts < plan->network.ranks));
}

static tutti_status simulate(tutti_comm_plan *plan, int algorithm, int size)
{
    tutti_simulated result;
    tutti_comm_plan_cell *cell = &plan->cells[algorithm][size];
    tutti_status status =
        tutti__simulate(&plan->network, plan->operation, plan->names[algorithm],
                        tutti__comm_plan_block(plan, plan->bytes[size]), plan->limit, &result);
    if (status == TUTTI_UNSUPPORTED)
        return TUTTI_OK;
    plan->skipped[algorithm] |= status == TUTTI_TOO_LARGE;
    if (status == TUTTI_TOO_LARGE)
        return TUTTI_OK;
    TUTTI_TRY(status);
    cell->simulated = result.seconds;
    cell->messages = result.messages;
    cell->busiest = result.busiest;
    return TUTTI_OK;
}

tutti_status tutti__comm_plan_fill(tutti_comm_plan *plan)
{
    const char *const *name = tutti_comm_algorithms(plan->operation);
    for (int64_t bytes = 8; !plan->measured_sizes && bytes <= INT64_C(1) << 30; bytes *= 8)
        plan->bytes[plan->size_count++] = bytes;
    for (; *name; name++) {
        if (!fill_fits(plan, *name) || plan->algorithm_count == TUTTI_COMM_PLAN_ALGORITHMS)
            continue;
        int at = plan->algorithm_count++;
        plan->names[at] = *name;
        for (int size = 0; size < plan->size_count; size++) {
            plan->cells[at][size] =
                (tutti_comm_plan_cell){.predicted = tutti_comm_predict(
                                           &plan->cost, plan->operation, *name, plan->network.ranks,
                                           tutti__comm_plan_block(plan, plan->bytes[size])),
                                       .simulated = NAN,
                                       .measured = NAN};
            if (plan->simulate && !plan->skipped[at])
                TUTTI_TRY(simulate(plan, at, size));
        }
    }
    return TUTTI_OK;
}

/* ---- measured ---- */

/* The number behind "name": in a line of our own JSON. */
static bool number_in(const char *line, const char *name, double *ret)
{
    char key[40], *end;
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(line, key);
    if (!at)
        return false;
    at += strlen(key);
    *ret = strtod(at, &end);
    return end != at;
}

static bool has_text(const char *line, const char *name, const char *text)
{
    char key[100];
    snprintf(key, sizeof key, "\"%s\":\"%s\"", name, text);
    return strstr(line, key) != NULL;
}

/* A row of this operation and number of ranks: its bytes and microseconds. */
static bool read_row(const tutti_comm_plan *plan, const char *line, double *ret_bytes,
                     double *ret_us)
{
    double ranks;
    return has_text(line, "op", plan->operation) && number_in(line, "ranks", &ranks) &&
           number_in(line, "bytes", ret_bytes) && number_in(line, "us", ret_us) &&
           ranks == plan->network.ranks && *ret_us > 0 && *ret_bytes >= 0 && *ret_bytes < 0x1p62;
}

static int size_of(const tutti_comm_plan *plan, double bytes)
{
    for (int s = 0; s < plan->size_count; s++)
        if (bytes == (double)plan->bytes[s])
            return s;
    return -1;
}

static bool take_size(tutti_comm_plan *plan, const char *line)
{
    double bytes, us;
    if (!read_row(plan, line, &bytes, &us) || size_of(plan, bytes) >= 0 ||
        plan->size_count == TUTTI_COMM_PLAN_SIZES)
        return false;
    int at = plan->size_count++;
    for (; at > 0 && (double)plan->bytes[at - 1] > bytes; at--)
        plan->bytes[at] = plan->bytes[at - 1];
    plan->bytes[at] = (int64_t)bytes;
    plan->measured_sizes = true;
    return true;
}

static bool take_line(tutti_comm_plan *plan, const char *line)
{
    double bytes, us;
    int size = read_row(plan, line, &bytes, &us) ? size_of(plan, bytes) : -1;
    for (int a = 0; size >= 0 && a < plan->algorithm_count; a++)
        if (has_text(line, "algorithm", plan->names[a])) {
            plan->cells[a][size].measured = us * 1e-6;
            return true;
        }
    return false;
}

static tutti_status each_line(tutti_comm_plan *plan, const char *path,
                              bool (*take)(tutti_comm_plan *plan, const char *line), int *ret_rows)
{
    char line[4096];
    int rows = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        return tutti_fail(TUTTI_IO,
                          "cannot read '%s': %s; make it with tutti bench collectives --json", path,
                          strerror(errno));
    while (fgets(line, sizeof line, file))
        rows += take(plan, line);
    fclose(file);
    *ret_rows = rows;
    return TUTTI_OK;
}

tutti_status tutti__comm_plan_sizes(tutti_comm_plan *plan, const char *path, int *ret_sizes)
{
    return each_line(plan, path, take_size, ret_sizes);
}

tutti_status tutti__comm_plan_measured(tutti_comm_plan *plan, const char *path, int *ret_rows)
{
    return each_line(plan, path, take_line, ret_rows);
}
