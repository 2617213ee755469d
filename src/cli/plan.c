/* plan.c: `tutti plan`: what the cost model and the simulator say of clusters that are not at hand.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/plan/plan.h"
#include "comm/cost/description.h"

static const char usage[] =
    "usage: tutti plan NAME|MODEL.json --ranks N [--hosts N] [--ps N] [--memory BYTES] [--alpha S]\n"
    "                  [--beta S] [--flops F]\n"
    "       tutti plan collectives --ranks N --alpha S --beta S|--links FILE [OPTIONS]\n"
    "       tutti plan schedule --stages N --micro N [--schedule NAME] [OPTIONS]\n\n"
    "Of a training, by the names of tutti train: memory, traffic, step time and efficiency of every\n"
    "strategy on that cluster, and which one to take. --batch N and other flags as tutti train has\n"
    "them; settings of the strategy (--set wire=bf16) count. A rank's program is compiled as it would be\n"
    "there, and timed here; --flops F scales its time to ranks of so many operations a second (1e12),\n"
    "by default as here. Parameter servers stand beside the ranks: one, and --ps N of them (a quarter\n"
    "of the ranks, at least 2). --memory 16GiB is what a rank has: strategies that need more say for\n"
    "what. --json prints one object a strategy.\n\n"
    "Of collectives: prints the predicted time of every algorithm by message size, and where the best one changes.\n\n"
    "  --ranks N        ranks in all\n"
    "  --alpha S        seconds for a message of no bytes (20us and 0.02ms are understood)\n"
    "  --beta S         seconds a byte (1ns; or a bandwidth: 10GB/s)\n"
    "  --gamma S        seconds a byte of an addition (0.05ns)\n"
    "  --hosts N        machines that the ranks are spread over (as many as ranks)\n"
    "  --near-alpha S --near-beta S       the same within a machine (as between them)\n"
    "  --links FILE     all of these from a description of the cluster, such as TUTTI_LINKS takes\n"
    "  --op OP          all_reduce (default), broadcast, all_gather, ...\n"
    "  --json           one object a line: op, algorithm, ranks, bytes, predicted_us, best, and with\n"
    "                   --simulate simulated_us, messages, busiest_link\n\n"
    "  --simulate       runs every algorithm on a model of the network, event by event\n"
    "  --switch N       machines below one switch (all)\n"
    "  --oversubscription F               machines' bandwidth over that of a switch's uplinks (1)\n"
    "  --stragglers N --slowdown F        so many ranks are F times slower\n"
    "  --jitter S --seed N                ranks begin late by a random time of this mean\n"
    "  --overhead F     share of alpha that keeps the sender busy (0.5)\n"
    "  --limit N        most messages of one simulation (20000000)\n\n"
    "  --measured FILE  what `tutti bench collectives --json` printed, to be set beside it\n"
    "  --svg FILE       a picture: predicted, simulated and measured times\n\n"
    "Of schedules: what each device of a pipeline does when, drawn; idle time and the activations that\n"
    "are held. Without --schedule, of all of them.\n\n"
    "  --stages N       devices, one after the other\n"
    "  --micro N        micro-batches that a batch is cut into\n"
    "  --schedule NAME  naive, gpipe, 1f1b, interleaved, zero_bubble\n"
    "  --chunks N       stages to a device, of interleaved (2)\n"
    "  --forward T --backward T --weight T\n"
    "                   what a micro-batch takes on a device: forwards, gradients of inputs and of\n"
    "                   weights (1 each)\n"
    "  --send T         what a value takes to the next device (0)\n"
    "  --columns N      most columns of the picture (96)\n";

/* Seconds; false with a complaint. A bandwidth, where it is one that is asked for, gives seconds a
 * byte. */
static bool read_seconds(const char *name, const char *text, bool bandwidth, double *ret)
{
    if (tutti__read_seconds(text, bandwidth, ret)) {
        if (tutti__check_seconds(name, bandwidth, *ret) == TUTTI_OK)
            return true;
        tutti__complain("%s", tutti_error_message());
        return false;
    }
    tutti__complain("%s takes a time (20us, 0.8ns)%s, not '%s'", name,
                    bandwidth ? " or a bandwidth (10GB/s, 25Gbit/s)" : "", text);
    return false;
}

/* An option of seconds; keeps *ret when it was not given. */
static bool option_seconds(int *argc, char **argv, const char *name, double *ret)
{
    const char *text;
    return !tutti__option(argc, argv, name, &text) || read_seconds(name, text, false, ret);
}

/* The same of seconds a byte. */
static bool option_per_byte(int *argc, char **argv, const char *name, double *ret)
{
    const char *text;
    return !tutti__option(argc, argv, name, &text) || read_seconds(name, text, true, ret);
}

/* --beta is for messages of all sizes, whatever a description says. */
static bool option_beta(int *argc, char **argv, const char *name, tutti_comm_link link,
                        tutti_network *n)
{
    double beta = 0;
    if (!option_per_byte(argc, argv, name, &beta))
        return false;
    if (beta > 0) {
        n->beta[link] = beta;
        memset(n->beta_by_size[link], 0, sizeof n->beta_by_size[link]);
    }
    return true;
}

static bool option_number(int *argc, char **argv, const char *name, double low, double high,
                          double *ret)
{
    const char *text;
    char *end;
    if (!tutti__option(argc, argv, name, &text))
        return true;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= low) || !(value <= high)) {
        tutti__complain("%s takes a number from %g to %g, not '%s'", name, low, high, text);
        return false;
    }
    *ret = value;
    return true;
}

/* --ranks and --hosts; 0: not given. */
static bool option_ranks(int *argc, char **argv, int64_t fewest, int64_t *ret_ranks,
                         int64_t *ret_hosts)
{
    if (!tutti__option_int(argc, argv, "--ranks", fewest, 1 << 20, ret_ranks) ||
        !tutti__option_int(argc, argv, "--hosts", 1, 1 << 20, ret_hosts))
        return false;
    if (*ret_ranks == 0 || *ret_hosts <= *ret_ranks)
        return true;
    tutti__complain("--hosts %lld is more machines than --ranks %lld has ranks",
                    (long long)*ret_hosts, (long long)*ret_ranks);
    return false;
}

/* --links FILE: links as a description has them; options say otherwise. */
static bool read_links(int *argc, char **argv, tutti_network *n)
{
    const char *path;
    tutti_description d;
    if (!tutti__option(argc, argv, "--links", &path))
        return true;
    if (tutti__description_read(path, &d) != TUTTI_OK) {
        tutti__complain("%s", tutti_error_message());
        return false;
    }
    tutti__comm_plan_describe(&d, n);
    for (int link = 0; link < TUTTI_LINK_COUNT; link++)
        if (d.alpha[link] == 0 || d.beta[link][0] == 0)
            fprintf(stderr,
                    "tutti plan: '%s' does not say all of links %s a machine; assumed, unless "
                    "options say otherwise: alpha %g us, beta %g GB/s\n",
                    path, link == TUTTI_LINK_WITHIN ? "within" : "beyond", n->alpha[link] * 1e6,
                    1e-9 / n->beta[link]);
    return true;
}

static bool read_network(int *argc, char **argv, tutti_network *n)
{
    int64_t ranks = 0, hosts = 0, group = 0, stragglers = 0, seed = 0;
    n->gamma = 0.05e-9;
    n->overhead = 0.5;
    n->oversubscription = n->slowdown = 1;
    if (!read_links(argc, argv, n) || !option_ranks(argc, argv, 2, &ranks, &hosts) ||
        !tutti__option_int(argc, argv, "--switch", 1, 1 << 20, &group) ||
        !tutti__option_int(argc, argv, "--stragglers", 0, 1 << 20, &stragglers) ||
        !tutti__option_int(argc, argv, "--seed", 0, INT64_MAX, &seed) ||
        !option_seconds(argc, argv, "--alpha", &n->alpha[TUTTI_LINK_BETWEEN]) ||
        !option_beta(argc, argv, "--beta", TUTTI_LINK_BETWEEN, n) ||
        !option_seconds(argc, argv, "--near-alpha", &n->alpha[TUTTI_LINK_WITHIN]) ||
        !option_beta(argc, argv, "--near-beta", TUTTI_LINK_WITHIN, n) ||
        !option_per_byte(argc, argv, "--gamma", &n->gamma) ||
        !option_seconds(argc, argv, "--jitter", &n->jitter) ||
        !option_number(argc, argv, "--oversubscription", 1, 1e6, &n->oversubscription) ||
        !option_number(argc, argv, "--slowdown", 1, 1e6, &n->slowdown) ||
        !option_number(argc, argv, "--overhead", 0, 1e6, &n->overhead))
        return false;
    if (ranks > 0 && stragglers > ranks) {
        tutti__complain("--stragglers %lld is more than --ranks %lld", (long long)stragglers,
                        (long long)ranks);
        return false;
    }
    n->ranks = (int)ranks;
    n->hosts = (int)(hosts > 0 ? hosts : ranks);
    n->switch_hosts = (int)group;
    n->stragglers = (int)stragglers;
    n->seed = (uint64_t)seed;
    n->overhead = fmin(n->overhead, 1);
    if (n->alpha[TUTTI_LINK_WITHIN] == 0)
        n->alpha[TUTTI_LINK_WITHIN] = n->alpha[TUTTI_LINK_BETWEEN];
    if (n->beta[TUTTI_LINK_WITHIN] == 0)
        n->beta[TUTTI_LINK_WITHIN] = n->beta[TUTTI_LINK_BETWEEN];
    return true;
}

static int carry_out(tutti_comm_plan *plan, const char *measured, const char *picture)
{
    int sizes = 0, rows = 0;
    tutti_status status =
        measured ? tutti__comm_plan_sizes(plan, measured, &sizes) : tutti__comm_plan_fill(plan);
    if (status == TUTTI_OK && measured && sizes > 0) {
        status = tutti__comm_plan_fill(plan);
        if (status == TUTTI_OK)
            status = tutti__comm_plan_measured(plan, measured, &rows);
    }
    if (status != TUTTI_OK)
        return tutti__complain("%s", tutti_error_message());
    if (measured && rows == 0)
        return tutti__complain("'%s' has no measurement of %s with %d ranks", measured,
                               plan->operation, plan->network.ranks);
    tutti__comm_plan_print(plan);
    if (picture && tutti__comm_plan_picture(plan, picture) != TUTTI_OK)
        return tutti__complain("%s", tutti_error_message());
    return TUTTI_EXIT_OK;
}

extern const tutti_command tutti_command_train;

/* What is left must be plan's or train's: the example would speak of a flag of its own. */
static bool knows_all(int argc, char **argv)
{
    static char both[16384];
    snprintf(both, sizeof both, "%s%s", usage, tutti_command_train.usage);
    return tutti__knows_flags(both, argc, argv);
}

static int plan_model(int argc, char **argv)
{
    /* tutti plan NAME --ranks 8 … is tutti train NAME with what a forecast asks for as settings. */
    static char settings[8][96], set[] = "--set", quiet[] = "--quiet";
    char *list[64] = {argv[0], argv[1]};
    int count = 2, used = 0;
    int64_t ranks = 0, hosts = 0, servers = 0;
    double flops = 0;
    const char *memory = NULL;
    tutti_network n = {0};
    (void)tutti__option(&argc, argv, "--memory", &memory);
    if (!option_ranks(&argc, argv, 1, &ranks, &hosts) ||
        !tutti__option_int(&argc, argv, "--ps", 1, 1 << 20, &servers) ||
        !option_number(&argc, argv, "--flops", 0, 1e30, &flops) || !read_links(&argc, argv, &n) ||
        !option_seconds(&argc, argv, "--alpha", &n.alpha[TUTTI_LINK_BETWEEN]) ||
        !option_per_byte(&argc, argv, "--beta", &n.beta[TUTTI_LINK_BETWEEN]) ||
        !knows_all(argc, argv))
        return TUTTI_EXIT_USAGE;
    if (ranks == 0) {
        tutti__complain("plan: --ranks is missing; see tutti plan --help");
        return TUTTI_EXIT_USAGE;
    }
    snprintf(settings[used++], sizeof settings[0], "plan-ranks=%lld", (long long)ranks);
    if (hosts > 0)
        snprintf(settings[used++], sizeof settings[0], "plan-hosts=%lld", (long long)hosts);
    if (servers > 0)
        snprintf(settings[used++], sizeof settings[0], "plan-ps=%lld", (long long)servers);
    if (memory)
        snprintf(settings[used++], sizeof settings[0], "plan-memory=%.60s", memory);
    if (flops > 0)
        snprintf(settings[used++], sizeof settings[0], "plan-flops=%.9g", flops);
    if (n.alpha[TUTTI_LINK_BETWEEN] > 0)
        snprintf(settings[used++], sizeof settings[0], "plan-alpha=%.9g",
                 n.alpha[TUTTI_LINK_BETWEEN]);
    if (n.beta[TUTTI_LINK_BETWEEN] > 0)
        snprintf(settings[used++], sizeof settings[0], "plan-beta=%.9g",
                 n.beta[TUTTI_LINK_BETWEEN]);
    for (int i = 2; i < argc && count < 40; i++)
        list[count++] = argv[i];
    for (int i = 0; i < used; i++) {
        list[count++] = set;
        list[count++] = settings[i];
    }
    list[count++] = quiet;
    return tutti_command_train.run(count, list);
}

static int plan_run(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "schedule") == 0)
        return tutti__plan_schedule(argc, argv);
    if (argc > 1 && argv[1][0] != '-' && strcmp(argv[1], "collectives") != 0)
        return plan_model(argc, argv);
    const char *measured = NULL, *picture = NULL;
    int64_t limit = 20000000;
    tutti_comm_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return tutti__complain("no memory");
    plan->operation = "all_reduce";
    plan->json = tutti__flag(&argc, argv, "--json");
    plan->simulate = tutti__flag(&argc, argv, "--simulate");
    (void)tutti__option(&argc, argv, "--op", &plan->operation);
    (void)tutti__option(&argc, argv, "--measured", &measured);
    (void)tutti__option(&argc, argv, "--svg", &picture);
    const tutti_network *n = &plan->network;
    int code = TUTTI_EXIT_USAGE;
    if (!tutti__option_int(&argc, argv, "--limit", 1, INT64_MAX, &limit) ||
        !read_network(&argc, argv, &plan->network))
        code = TUTTI_EXIT_USAGE;
    else if (argc > 2)
        tutti__complain("plan collectives does not know '%s'%s; see tutti plan --help", argv[2],
                        tutti__meant(tutti__flag_meant(usage, argv[2])));
    else if (argc != 2 || strcmp(argv[1], "collectives") != 0 || !n->ranks ||
             n->alpha[TUTTI_LINK_BETWEEN] == 0 || n->beta[TUTTI_LINK_BETWEEN] == 0)
        tutti__complain(
            "plan takes the name of a training, a model's JSON file or `collectives`, "
            "and --ranks; collectives need --alpha and --beta, or --links, too; see tutti plan "
            "--help");
    else if (!plan->simulate && (n->switch_hosts > 0 || n->stragglers > 0 || n->jitter > 0 ||
                                 n->oversubscription > 1 || n->slowdown > 1))
        tutti__complain("--switch, --oversubscription, --stragglers, --slowdown and --jitter are "
                        "for --simulate: formulas know nothing of them");
    else if (!tutti_comm_algorithms(plan->operation)[0])
        tutti__complain("there is no operation '%s'", plan->operation);
    else if (plan->simulate && n->ranks > TUTTI_SIM_RANKS)
        tutti__complain("--simulate takes up to %d ranks", TUTTI_SIM_RANKS);
    else {
        plan->limit = (uint64_t)limit;
        plan->cost = tutti__comm_plan_cost(n);
        code = carry_out(plan, measured, picture);
    }
    free(plan);
    return code;
}

const tutti_command tutti_command_plan = {
    .name = "plan",
    .summary = "what a training or a collective would take on a cluster that is not at hand",
    .usage = usage,
    .run = plan_run,
};
