/* roster_view_test.c: open rosters under a simulator of network and time: processes are killed,
 * stopped, cut off, come and leave at random. TUTTI_TEST_SEED=17 replays one seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/test.h"
#include "cluster/roster_view.h"

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)
enum { MOST = 6 };
static uint64_t seed;
#define HOLDS(condition) ((condition) ? (void)0 : fail_story(__LINE__, #condition))
static void fail_story(int line, const char *condition);

typedef enum kind { CONNECT, CONNECTED, NOBODY, HELLO, ADMITTED, REFUSED, MESSAGE, CLOSED } kind;

typedef struct event {
    int64_t at;
    uint64_t order;
    kind kind;
    int to, from, line; /* line: of the connection */
    uint32_t purpose;
    tutti_refusal refusal;
    char text[100];
    tutti_cluster_message *message;
} event;

typedef struct node {
    tutti_roster roster;
    int rank;
    bool there, stopped, left;
    int line[MOST];    /* connection to each other one; 0: none */
    int64_t called_ns; /* a newcomer's call */
} node;

static node nodes[MOST];
static int size, lines;
static int64_t now, slow;
static bool lost[MOST][MOST]; /* what goes from a to b waits until it is mended */
static uint64_t drawn, order;
static TUTTI_VEC(event) queue;

static uint64_t draw(uint64_t below)
{
    drawn += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (drawn ^ (drawn >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

static int64_t last_at[MOST][MOST];

static event *post(kind what, int from, int to, int line)
{
    event e = {.kind = what, .from = from, .to = to, .line = line, .order = ++order};
    e.at = now + 10000 + (int64_t)draw((uint64_t)slow);
    if (e.at < last_at[from][to])
        e.at = last_at[from][to]; /* streams keep their order */
    last_at[from][to] = e.at;
    CHECK(TUTTI_VEC_PUSH(&queue, e));
    return &queue.data[queue.count - 1];
}

static void node_send(void *context, int rank, const tutti_cluster_message *message)
{
    node *n = context;
    uint8_t frame[TUTTI_FRAME_BYTES];
    size_t used;
    if (n->line[rank] == 0)
        return;
    event *e = post(MESSAGE, n->rank, rank, n->line[rank]);
    e->message = malloc(sizeof *e->message);
    size_t bytes = tutti__message_write(message, frame); /* as the wire would carry it */
    CHECK_STATUS(tutti__message_read(frame, bytes, e->message, &used), TUTTI_OK);
}

static void end_line(node *n, int rank)
{
    if (n->line[rank] != 0)
        post(CLOSED, n->rank, rank, n->line[rank]);
    n->line[rank] = 0;
}

static void node_drop(void *context, int rank)
{
    end_line(context, rank);
}

static void node_where(void *context, tutti_wheres *ret_where)
{
    TUTTI_UNUSED(context);
    memset(ret_where, 0, sizeof *ret_where);
}

static tutti_calling node_call(void *context, int rank, uint32_t purpose)
{
    node *n = context;
    end_line(n, rank);
    n->line[rank] = ++lines;
    post(CONNECT, n->rank, rank, n->line[rank])->purpose = purpose;
    return TUTTI_CALL_BEGUN;
}

static void start_node(int rank)
{
    node *n = &nodes[rank];
    static int processes = 1000;
    tutti_roster_ways ways = {
        .context = n, .send = node_send, .drop = node_drop, .where = node_where, .call = node_call};
    tutti_roster_options options = {
        .rank = rank, .size = size, .job = seed + 1, .silence_ns = 5 * SECOND, .open = true};
    tutti_peer self = {.pid = ++processes, .port = 100 + rank, .machine = (uint64_t)rank};
    if (n->roster.members != NULL)
        tutti__roster_free(&n->roster);
    *n = (node){.rank = rank, .there = true, .called_ns = now};
    CHECK_STATUS(tutti__roster_init(&n->roster, &options, &ways, now), TUTTI_OK);
    snprintf(self.address, sizeof self.address, "10.0.0.%d", rank);
    tutti__roster_self(&n->roster, &self);
}

static bool is_up(const node *n)
{
    return n->there && !n->left;
}

/* For who looks into a story that went wrong. */
static void show_nodes(void)
{
    for (int r = 0; r < size && getenv("TUTTI_TEST_SEED") != NULL; r++) {
        const tutti_roster *roster = &nodes[r].roster;
        printf("%.3f rank %d%s%s: phase %d keeper %d view %llu cut %d outside %d asks %d:",
               (double)now / 1e9, r, is_up(&nodes[r]) ? "" : " away",
               nodes[r].stopped ? " stopped" : "", (int)roster->phase, roster->keeper,
               (unsigned long long)roster->view, roster->cut, roster->outside, roster->stand_in);
        for (int i = 0; i < size; i++)
            printf(" %llu%s%s", (unsigned long long)roster->members[i].incarnation,
                   roster->members[i].linked ? "L" : "", roster->members[i].ended ? "e" : "");
        printf("\n");
    }
}

static void fail_story(int line, const char *condition)
{
    show_nodes();
    tutti__test_fail(__FILE__, line, "TUTTI_TEST_SEED=%llu at %.3f s: %s", (unsigned long long)seed,
                     (double)now / 1e9, condition);
}

static void kill_node(node *n)
{
    for (int r = 0; r < size; r++)
        if (r != n->rank)
            end_line(n, r);
    n->there = n->stopped = false;
}

/* A newcomer asks who keeps the roster; rank 0 begins one where nobody is. */
static void seek(node *n)
{
    bool others = false, calls = false;
    for (int r = 0; r < size; r++) {
        if (now - n->called_ns > 2 * SECOND)
            end_line(n, r);
        calls = calls || n->line[r] != 0;
    }
    for (int r = 0; r < size && !calls; r++) {
        const node *other = &nodes[r];
        others = others || (r != n->rank && is_up(other) && other->roster.view > 0);
        if (r == n->rank || !is_up(other) || other->stopped || lost[n->rank][r] || lost[r][n->rank])
            continue;
        int keeper = other->roster.keeper;
        if (other->roster.phase != TUTTI_PHASE_RUNNING || keeper < 0 || keeper == n->rank)
            continue;
        n->roster.reached[0] = '\0';
        snprintf(n->roster.reached, sizeof n->roster.reached, "10.0.0.%d", keeper);
        node_call(n, keeper, TUTTI_PURPOSE_JOIN);
        calls = true;
        n->called_ns = now;
    }
    if (!others && !calls && n->rank == 0)
        tutti__roster_view_found(&n->roster, now);
}

/* ---- events ---- */

static void take_hello(node *n, const event *e)
{
    tutti_roster *roster = &n->roster;
    bool joins = e->purpose == TUTTI_PURPOSE_JOIN;
    tutti_refusal refusal = joins ? tutti__roster_may_admit(roster, e->from)
                                  : tutti__roster_may_stand_in(roster, e->from);
    event *answer =
        post(refusal == TUTTI_REFUSAL_NONE ? ADMITTED : REFUSED, n->rank, e->from, e->line);
    answer->refusal = refusal;
    tutti__roster_view_keeper_text(roster, answer->text, sizeof answer->text);
    if (refusal != TUTTI_REFUSAL_NONE)
        return;
    if (joins)
        tutti__roster_view_make_room(roster, now, e->from);
    if (n->line[e->from] != e->line)
        end_line(n, e->from);
    n->line[e->from] = e->line;
    if (!joins) {
        tutti__roster_stand_in_for(roster, now, e->from);
        return;
    }
    tutti_peer peer = nodes[e->from].roster.members[e->from].peer;
    tutti__roster_admit(roster, now, e->from, &peer);
}

static void take_answer(node *n, const event *e)
{
    tutti_roster *roster = &n->roster;
    bool newcomer = roster->phase == TUTTI_PHASE_GATHERING;
    if (n->line[e->from] != e->line)
        return;
    if (e->kind == ADMITTED && newcomer)
        tutti__roster_view_linked(roster, now, e->from, "10.0.0.9");
    else if (e->kind == ADMITTED)
        tutti__roster_stand_in_reached(roster, now, e->from);
    else {
        n->line[e->from] = 0;
        if (newcomer)
            return;
        if (e->refusal == TUTTI_REFUSAL_TAKEN)
            tutti__roster_stand_in_taken(roster, e->from);
        else
            tutti__roster_view_refused(roster, now, e->from, e->text);
    }
}

static void take(node *n, const event *e)
{
    if (e->kind == CONNECT) {
        post(is_up(n) ? CONNECTED : NOBODY, e->to, e->from, e->line);
        return;
    }
    if (!is_up(n))
        return;
    bool mine = n->line[e->from] == e->line;
    if (e->kind == CONNECTED && mine) {
        tutti__roster_stand_in_connected(&n->roster, e->from);
    } else if (e->kind == NOBODY && mine) {
        n->line[e->from] = 0;
        if (n->roster.phase != TUTTI_PHASE_GATHERING) {
            tutti__roster_view_ended(&n->roster, e->from);
            tutti__roster_closed(&n->roster, now, e->from, "");
        }
    } else if (e->kind == HELLO) {
        take_hello(n, e);
    } else if (e->kind == ADMITTED || e->kind == REFUSED) {
        take_answer(n, e);
    } else if (e->kind == MESSAGE && mine) {
        tutti__roster_receive(&n->roster, now, e->from, e->message);
    } else if (e->kind == CLOSED && mine) {
        n->line[e->from] = 0;
        tutti__roster_closed(&n->roster, now, e->from, "reset");
    }
}

/* ---- what must be true ---- */

/* Of a view nobody has another picture than the others. */
static void check_agreement(void)
{
    for (int a = 0; a < size; a++)
        for (int b = 0; b < a; b++) {
            const tutti_roster *x = &nodes[a].roster, *y = &nodes[b].roster;
            if (!is_up(&nodes[a]) || !is_up(&nodes[b]) || x->view != y->view || x->view == 0 ||
                x->phase != TUTTI_PHASE_RUNNING || y->phase != TUTTI_PHASE_RUNNING)
                continue;
            HOLDS(x->keeper == y->keeper);
            for (int r = 0; r < size; r++)
                HOLDS(x->members[r].incarnation == y->members[r].incarnation);
        }
}

static bool is_settled(void)
{
    const tutti_roster *first = NULL;
    for (int a = 0; a < size; a++) {
        const tutti_roster *roster = &nodes[a].roster;
        if (!is_up(&nodes[a]))
            continue;
        first = first != NULL ? first : roster;
        if (roster->phase != TUTTI_PHASE_RUNNING || roster->view != first->view || roster->cut)
            return false;
        for (int r = 0; r < size; r++)
            if (tutti__roster_view_has(roster, r) != is_up(&nodes[r]))
                return false;
    }
    return true;
}

static void run(int64_t until_ns, bool settle)
{
    while (now < until_ns && !(settle && is_settled())) {
        int64_t next = now + 20 * MILLISECOND;
        size_t best = queue.count;
        for (size_t i = 0; i < queue.count; i++) {
            const event *e = &queue.data[i];
            if (lost[e->from][e->to] || (nodes[e->to].stopped && e->kind != CONNECT))
                continue;
            if (e->at < next ||
                (best < queue.count && e->at == next && e->order < queue.data[best].order))
                best = i, next = e->at;
        }
        if (best == queue.count)
            now = next;
        else {
            event e = queue.data[best];
            memmove(&queue.data[best], &queue.data[best + 1], (queue.count - best - 1) * sizeof e);
            queue.count--;
            now = e.at > now ? e.at : now;
            take(&nodes[e.to], &e);
            if (e.kind == CONNECT && is_up(&nodes[e.to])) { /* the process finds it later */
                event *hello = post(HELLO, e.from, e.to, e.line);
                hello->purpose = e.purpose;
            }
            free(e.message);
            check_agreement();
        }
        for (int r = 0; r < size; r++) {
            node *n = &nodes[r];
            if (!is_up(n) || n->stopped)
                continue;
            if (n->roster.phase == TUTTI_PHASE_GATHERING)
                seek(n);
            if (tutti__roster_next(&n->roster) <= now)
                tutti__roster_tick(&n->roster, now);
            if (n->roster.phase == TUTTI_PHASE_LEFT) {
                n->left = true;
                kill_node(n);
            }
            HOLDS(n->roster.phase != TUTTI_PHASE_FAILED);
        }
    }
}

static void end_simulation(void)
{
    for (size_t i = 0; i < queue.count; i++)
        free(queue.data[i].message);
    TUTTI_VEC_FREE(&queue);
    for (int r = 0; r < MOST; r++) {
        tutti__roster_free(&nodes[r].roster);
        nodes[r] = (node){0};
    }
    memset(lost, 0, sizeof lost);
    memset(last_at, 0, sizeof last_at);
}

static void begin_simulation(uint64_t with, int ranks)
{
    seed = drawn = with;
    order = 0;
    lines = 0;
    now = 1000 * SECOND;
    size = ranks;
    slow = (int64_t)(draw(4) == 0 ? 20 * MILLISECOND : MILLISECOND);
    for (int r = 0; r < size; r++)
        start_node(r);
    run(now + 2 * SECOND, true);
    HOLDS(is_settled());
}

static void mend(void)
{
    memset(lost, 0, sizeof lost);
    for (int r = 0; r < size; r++)
        nodes[r].stopped = false;
}

static void cut_off(unsigned half)
{
    for (int a = 0; a < size; a++)
        for (int b = 0; b < size; b++)
            lost[a][b] = (half >> a & 1) != (half >> b & 1);
}

/* One fault after the other, some at a time; a network is cut where nothing else happens, since a
 * view is not agreed on. */
static void disturb(void)
{
    node *n = &nodes[draw((uint64_t)size)];
    uint64_t fault = draw(8);
    if (fault == 4) {
        mend();
        run(now + 20 * SECOND, true);
    }
    switch (fault) {
    case 0:
    case 1:
    case 2:
        if (n->there)
            kill_node(n);
        else
            start_node(n->rank);
        break;
    case 3:
        n->stopped = n->there && !n->stopped;
        break;
    case 4:
        cut_off((unsigned)draw(1u << size));
        run(now + (int64_t)draw(15 * (uint64_t)SECOND), false);
        mend();
        run(now + 20 * SECOND, true);
        break;
    case 5: { /* one link breaks */
        int other = (int)draw((uint64_t)size);
        if (is_up(n) && n->line[other] != 0) {
            post(CLOSED, other, n->rank, n->line[other]);
            end_line(n, other);
            n->line[other] = 0;
            tutti__roster_closed(&n->roster, now, other, "reset");
        }
        break;
    }
    case 6:
        if (is_up(n) && !n->stopped && n->roster.phase == TUTTI_PHASE_RUNNING)
            tutti__roster_leave(&n->roster, now);
        break;
    default:
        mend();
    }
}

/* Whether a process is there that was in the newest view: else the job is gone. */
static bool is_left(void)
{
    const tutti_roster *newest = NULL;
    for (int r = 0; r < size; r++)
        if (is_up(&nodes[r]) && (newest == NULL || nodes[r].roster.view > newest->view))
            newest = &nodes[r].roster;
    for (int r = 0; newest != NULL && r < size; r++) {
        const tutti_roster_member *own = &nodes[r].roster.members[r];
        if (is_up(&nodes[r]) && !nodes[r].roster.outside && own->told != 0 &&
            newest->members[r].incarnation == own->told)
            return true;
    }
    return false;
}

static void one_story(uint64_t number)
{
    begin_simulation(number, 2 + (int)(number % (MOST - 1)));
    for (int i = 0; i < 12; i++) {
        disturb();
        run(now + (int64_t)draw(8 * (uint64_t)SECOND), false);
    }
    mend();
    run(now + 60 * SECOND, true);
    HOLDS(is_settled() || !is_left());
    end_simulation();
}

TUTTI_TEST(view_whole_stories_end_in_one_view_of_all_that_are_there)
{
    const char *given = getenv("TUTTI_TEST_SEED");
    if (given != NULL) {
        one_story(strtoull(given, NULL, 10));
        return;
    }
    for (uint64_t s = 1; s <= 120; s++)
        one_story(s);
}

/* The kernel tells: within a second a killed rank is in nobody's view, be it the keeper or not, and
 * the others are the same as before. */
TUTTI_TEST(view_killed_rank_is_gone_within_a_second)
{
    for (uint64_t s = 1; s <= 60; s++) {
        begin_simulation(s, 2 + (int)(s % (MOST - 1)));
        uint64_t before[MOST];
        node *victim = &nodes[s % (uint64_t)size];
        for (int r = 0; r < size; r++)
            before[r] = nodes[r].roster.members[r].incarnation;
        kill_node(victim);
        run(now + SECOND, true);
        HOLDS(is_settled());
        for (int r = 0; r < size; r++)
            HOLDS(&nodes[r] == victim || nodes[r].roster.members[r].incarnation == before[r]);
        uint64_t view = nodes[victim->rank == 0 ? 1 : 0].roster.view;
        start_node(victim->rank);
        run(now + SECOND, true);
        HOLDS(is_settled() && victim->roster.view == view + 1);
        HOLDS(victim->roster.members[victim->rank].incarnation > view);
        end_simulation();
    }
}

TUTTI_TEST(view_stopped_rank_is_gone_within_the_limit_and_joins_again)
{
    for (uint64_t s = 1; s <= 30; s++) {
        begin_simulation(s, 3 + (int)(s % (MOST - 2)));
        node *victim = &nodes[s % (uint64_t)size];
        victim->stopped = true;
        run(now + 8 * SECOND, false);
        for (int r = 0; r < size; r++)
            HOLDS(&nodes[r] == victim || !tutti__roster_view_has(&nodes[r].roster, victim->rank));
        uint64_t before = victim->roster.members[victim->rank].incarnation;
        victim->stopped = false;
        run(now + 3 * SECOND, true);
        HOLDS(is_settled());
        HOLDS(victim->roster.members[victim->rank].incarnation > before);
        end_simulation();
    }
}

/* Of a network that is cut in two only one half goes on, and both are one again when it is mended.
 */
TUTTI_TEST(view_cut_network_has_one_view_that_goes_on)
{
    for (uint64_t s = 1; s <= 60; s++) {
        begin_simulation(s, 2 + (int)(s % (MOST - 1)));
        unsigned half = 1 + (unsigned)draw((1u << size) - 2);
        cut_off(half);
        run(now + 12 * SECOND, false);
        bool goes_on[2] = {false, false};
        for (int r = 0; r < size; r++) {
            const tutti_roster *roster = &nodes[r].roster;
            bool well = roster->phase == TUTTI_PHASE_RUNNING && !roster->cut;
            goes_on[half >> r & 1] = goes_on[half >> r & 1] || well;
        }
        HOLDS(goes_on[0] != goes_on[1]);
        mend();
        run(now + 10 * SECOND, true);
        HOLDS(is_settled());
        end_simulation();
    }
}

TUTTI_TEST(view_ranks_leave_and_the_others_know_that_it_was_well)
{
    begin_simulation(5, 4);
    tutti__roster_leave(&nodes[0].roster, now); /* it keeps the roster */
    run(now + 3 * SECOND, false);
    HOLDS(is_settled() && nodes[1].roster.keeper == 1 && nodes[3].roster.members[0].left);
    HOLDS(nodes[3].roster.members[0].gone[0] == '\0');
    tutti__roster_leave(&nodes[2].roster, now);
    run(now + SECOND, false);
    HOLDS(is_settled() && nodes[3].roster.members[2].left);
    kill_node(&nodes[3]);
    run(now + SECOND, false);
    HOLDS(is_settled() && !nodes[1].roster.members[3].left);
    CHECK(strstr(nodes[1].roster.members[3].gone, "connection closed"));
    end_simulation();
}

TUTTI_TEST(view_name_clash_is_refused_while_the_other_is_heard)
{
    begin_simulation(7, 3);
    CHECK_INT(tutti__roster_may_admit(&nodes[0].roster, 2), TUTTI_REFUSAL_TAKEN);
    CHECK_INT(tutti__roster_may_admit(&nodes[1].roster, 2), TUTTI_REFUSAL_ELSEWHERE);
    nodes[2].stopped = true;
    run(now + 3 * SECOND, false); /* it is still in the view */
    CHECK_INT(tutti__roster_may_admit(&nodes[0].roster, 2), TUTTI_REFUSAL_NONE);
    end_simulation();
}

TUTTI_TEST(view_keeper_text_is_read_back)
{
    char address[64];
    int rank, port;
    CHECK(tutti__roster_view_keeper_read("3 10.0.0.3:4711", 4, &rank, address, sizeof address,
                                         &port));
    CHECK(rank == 3 && port == 4711 && strcmp(address, "10.0.0.3") == 0);
    CHECK(
        tutti__roster_view_keeper_read("0 [fe80::1]:2", 4, &rank, address, sizeof address, &port));
    CHECK_STR(address, "fe80::1");
    CHECK(tutti__roster_view_keeper_read("0 :2", 4, &rank, address, sizeof address, &port));
    CHECK_STR(address, "");
    CHECK(!tutti__roster_view_keeper_read("", 4, &rank, address, sizeof address, &port));
    CHECK(!tutti__roster_view_keeper_read("4 a:1", 4, &rank, address, sizeof address, &port));
    CHECK(!tutti__roster_view_keeper_read("1 a:0", 4, &rank, address, sizeof address, &port));
    CHECK(!tutti__roster_view_keeper_read("1 a", 4, &rank, address, sizeof address, &port));
}
