/* closures_sim_test.c: closures under a simulator of network and time: messages are lost, repeated
 * and late; workers are killed in the middle of a closure, or taken for dead while they go on; the
 * coordinator is killed and goes on from its journal. TUTTI_TEST_SEED=17 replays one seed,
 * TUTTI_TEST_SEEDS=100000 runs so many.
 *
 * What must hold
 *  1. Every key of every closure is pushed by this closure alone, and has been applied in the end.
 *  2. Every closure has the outcome that its function gives, once, whatever happened.
 *  3. A sum over closures, as in an evaluation, counts each once.
 *  4. Everything comes to an end. */
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/test.h"
#include "service/coordinator/dispatcher.h"
#include "service/coordinator/executor.h"

#define MS INT64_C(1000000)
enum { WORKERS = 3, WAVES = 4, PER_WAVE = 12, KEYS = WAVES * PER_WAVE * 3 };

static uint64_t seed_now;
#define HOLDS(condition)                                                                           \
    ((condition) ? (void)0                                                                         \
                 : tutti__test_fail(__FILE__, __LINE__, "TUTTI_TEST_SEED=%llu: %s",                \
                                    (unsigned long long)seed_now, #condition))

typedef struct closure_letter {
    int64_t at;
    uint32_t to;
    uint8_t *frame;
    size_t size;
} closure_letter;

typedef struct closure_worker {
    bool alive, fenced; /* fenced: given up, and does not know it */
    uint32_t incarnation;
    tutti_executor executor;
    const tutti_closure_run *run;
    uint64_t pushed; /* of its keys */
    bool refused;
    int64_t next;
} closure_worker;

typedef struct closure_sim {
    uint64_t drawn;
    int64_t now, delay, view_at, fault_at, back_at;
    int lossy, repeats, faults;
    uint64_t view;
    closure_worker worker[WORKERS];
    tutti_journal journal;
    tutti_dispatcher dispatcher;
    bool up; /* the coordinator */
    uint32_t incarnation;
    uint64_t scheduled; /* of this wave, by this coordinator */
    uint64_t numbers[PER_WAVE];
    double sum;
    uint64_t below, owner[KEYS], applied[KEYS]; /* the servers': which closure a key is of */
    TUTTI_VEC(closure_letter) letters;
} closure_sim;

static uint64_t draw(closure_sim *s, uint64_t below)
{
    return tutti__random_below((tutti_random_key){.seed = seed_now}, s->drawn++, below);
}

static void post(closure_sim *s, uint32_t to, const uint8_t *frame, size_t size, int64_t most)
{
    uint8_t *copy = malloc(size);
    memcpy(copy, frame, size);
    closure_letter l = {s->now + 1 + (int64_t)draw(s, (uint64_t)most), to, copy, size};
    HOLDS(TUTTI_VEC_PUSH(&s->letters, l));
}

static void sim_post(void *context, uint32_t to, uint8_t *frame, size_t size)
{
    closure_sim *s = context;
    if ((int)draw(s, 100) < s->repeats)
        post(s, to, frame, size, s->delay * 4);
    if ((int)draw(s, 100) >= s->lossy)
        post(s, to, frame, size, s->delay);
    free(frame);
}

/* ---- workers ---- */

static void worker_start(closure_sim *s, int n)
{
    closure_worker *w = &s->worker[n];
    tutti__executor_free(&w->executor);
    *w = (closure_worker){.alive = true, .incarnation = w->incarnation + 1};
    tutti__executor_init(&w->executor, (uint32_t)n + 1, w->incarnation,
                         &(tutti_store_transport){s, sim_post});
}

/* What a closure computes. */
static double value_of(const uint8_t *arguments)
{
    return 2 * (double)arguments[0] + 1;
}

static void push_key(closure_sim *s, closure_worker *w)
{
    uint64_t key = w->run->first_key + w->pushed;
    HOLDS(key < KEYS);
    if (w->fenced) {
        w->refused = true;
        return;
    }
    HOLDS(key < s->below + TUTTI_STORE_CLOSURE_WINDOW);
    HOLDS(s->owner[key] == 0 || s->owner[key] == w->run->number);
    HOLDS(key >= s->below || s->applied[key] == 1);
    s->owner[key] = w->run->number;
    s->applied[key] = 1; /* a second time changes nothing */
    w->pushed++;
}

static void worker_goes_on(closure_sim *s, closure_worker *w)
{
    if (!w->alive || s->now < w->next)
        return;
    w->next = s->now + 1 + (int64_t)draw(s, 60 * MS);
    if (!w->run) {
        w->run = tutti__executor_take(&w->executor);
        w->pushed = 0;
        w->refused = false;
    } else if (w->pushed < w->run->keys && !w->refused) {
        push_key(s, w);
    } else {
        tutti_closure_outcome outcome;
        double value = value_of(w->run->arguments);
        HOLDS(tutti__closure_outcome_make(w->refused ? TUTTI_CLOSED : TUTTI_OK, "given up", &value,
                                          sizeof value, &outcome) == TUTTI_OK);
        tutti__executor_finish(&w->executor, &outcome);
        w->run = NULL;
    }
}

static void tell_view(closure_sim *s)
{
    tutti_store_process processes[WORKERS];
    tutti_store_view view = {.number = ++s->view, .workers = processes};
    for (int i = 0; i < WORKERS; i++)
        if (s->worker[i].alive && !s->worker[i].fenced)
            processes[view.worker_count++] =
                (tutti_store_process){(uint32_t)i + 1, s->worker[i].incarnation, (uint32_t)i};
    if (s->up)
        HOLDS(tutti__dispatcher_view(&s->dispatcher, &view, s->now) == TUTTI_OK);
}

/* ---- the coordinator, and its program ---- */

static void coordinator_start(closure_sim *s)
{
    HOLDS(tutti__dispatcher_init(&s->dispatcher,
                                 &(tutti_dispatcher_options){.incarnation = ++s->incarnation,
                                                             .transport = {s, sim_post},
                                                             .retry_ns = 20 * MS,
                                                             .attempts = 1000,
                                                             .journal = &s->journal}) == TUTTI_OK);
    s->up = true;
    s->scheduled = 0;
    s->sum = 0;
    tell_view(s);
}

static double fetch(closure_sim *s, int i)
{
    double value;
    tutti_closure_entry *e = tutti__dispatcher_find(&s->dispatcher, s->numbers[i]);
    HOLDS(e && e->state == TUTTI_CLOSURE_DONE && e->outcome.status == TUTTI_OK);
    HOLDS(e->outcome.size == sizeof value);
    memcpy(&value, e->outcome.results, sizeof value);
    tutti__dispatcher_release(&s->dispatcher, s->numbers[i]);
    return value;
}

/* A wave of closures, then what came of them, then a mark. */
static void program_goes_on(closure_sim *s)
{
    int64_t wave = s->journal.position;
    if (!s->up || wave == WAVES)
        return;
    if (s->scheduled < PER_WAVE) {
        uint8_t argument = (uint8_t)(wave * PER_WAVE + (int64_t)s->scheduled);
        HOLDS(tutti__dispatcher_schedule(&s->dispatcher, "step", &argument, 1, 1 + argument % 3,
                                         &s->numbers[s->scheduled], s->now) == TUTTI_OK);
        s->scheduled++;
    } else if (s->dispatcher.open == 0) {
        double sum = 0;
        for (int i = 0; i < PER_WAVE; i++)
            sum += fetch(s, i);
        HOLDS(sum == PER_WAVE * (2.0 * (double)wave * PER_WAVE + PER_WAVE - 1) + PER_WAVE);
        s->below = s->dispatcher.below_key; /* FINISH */
        tutti__dispatcher_finished(&s->dispatcher, s->below, s->now);
        HOLDS(s->dispatcher.below == s->dispatcher.next);
        HOLDS(tutti__journal_mark(&s->journal, wave + 1, s->dispatcher.next, s->dispatcher.next_key,
                                  NULL, 0) == TUTTI_OK);
        s->scheduled = 0;
    }
}

/* ---- faults ---- */

static void fault(closure_sim *s)
{
    int n = (int)draw(s, WORKERS + 1);
    s->fault_at = s->now + (int64_t)draw(s, 300 * MS);
    s->faults--;
    if (n == WORKERS && s->up) {
        tutti__dispatcher_free(&s->dispatcher);
        s->up = false;
        s->back_at = s->now + (int64_t)draw(s, 300 * MS);
    } else if (n < WORKERS && !s->worker[n].alive) {
        worker_start(s, n);
    } else if (n < WORKERS && s->worker[n].fenced) { /* it has seen it */
        worker_start(s, n);
    } else if (n < WORKERS && draw(s, 2) == 0) {
        s->worker[n].alive = false;
        if (draw(s, 2) == 0) /* back before anybody has seen it gone */
            worker_start(s, n);
    } else if (n < WORKERS) {
        s->worker[n].fenced = true;
    }
    if (s->view_at == INT64_MAX)
        s->view_at = s->now + (int64_t)draw(s, 100 * MS);
}

/* In the end somebody is there to do the work. */
static void mend(closure_sim *s)
{
    for (int i = 0; i < WORKERS; i++)
        if (!s->worker[i].alive || s->worker[i].fenced)
            worker_start(s, i);
    s->view_at = s->now;
    s->faults = -1;
}

static void tick(closure_sim *s)
{
    if (s->faults > 0 && s->now >= s->fault_at)
        fault(s);
    if (s->faults == 0)
        mend(s);
    if (!s->up && s->now >= s->back_at)
        coordinator_start(s);
    if (s->now >= s->view_at) {
        s->view_at = INT64_MAX;
        tell_view(s);
    }
    for (int i = 0; i < WORKERS; i++)
        worker_goes_on(s, &s->worker[i]);
    program_goes_on(s);
    if (s->up)
        HOLDS(tutti__dispatcher_tick(&s->dispatcher, s->now) == TUTTI_OK);
}

static void arrive(closure_sim *s, const closure_letter *l)
{
    tutti_store_message m;
    size_t used;
    HOLDS(tutti__store_message_read(l->frame, l->size, &m, &used) == TUTTI_OK);
    if (l->to == 0 && s->up)
        HOLDS(tutti__dispatcher_receive(&s->dispatcher, &m, s->now) == TUTTI_OK);
    else if (l->to > 0 && s->worker[l->to - 1].alive)
        tutti__executor_receive(&s->worker[l->to - 1].executor, &m);
    free(l->frame);
}

static void arrivals(closure_sim *s)
{
    for (size_t i = 0; i < s->letters.count;) {
        closure_letter l = s->letters.data[i];
        if (l.at > s->now) {
            i++;
            continue;
        }
        s->letters.data[i] = s->letters.data[--s->letters.count];
        arrive(s, &l);
    }
}

static void sim_story(uint64_t seed)
{
    closure_sim *s = calloc(1, sizeof *s);
    seed_now = seed;
    s->delay = MS * (int64_t)(1 + draw(s, 20));
    s->lossy = draw(s, 2) == 0 ? 0 : (int)draw(s, 30);
    s->repeats = draw(s, 2) == 0 ? 0 : (int)draw(s, 30);
    s->faults = (int)draw(s, 12);
    s->fault_at = (int64_t)draw(s, 300 * MS);
    s->view_at = INT64_MAX;
    HOLDS(tutti__journal_open(NULL, &s->journal) == TUTTI_OK);
    for (int i = 0; i < WORKERS; i++)
        worker_start(s, i);
    coordinator_start(s);
    while (s->journal.position < WAVES) {
        s->now += 5 * MS;
        HOLDS(s->now < 600000 * MS);
        arrivals(s);
        tick(s);
    }
    for (uint64_t key = 0; key < s->journal.next_key; key++)
        HOLDS(s->applied[key] == 1);
    if (s->up)
        tutti__dispatcher_free(&s->dispatcher);
    for (int i = 0; i < WORKERS; i++)
        tutti__executor_free(&s->worker[i].executor);
    for (size_t i = 0; i < s->letters.count; i++)
        free(s->letters.data[i].frame);
    TUTTI_VEC_FREE(&s->letters);
    tutti__journal_close(&s->journal);
    free(s);
}

static uint64_t number_of(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text && text[0] ? strtoull(text, NULL, 10) : fallback;
}

#if TUTTI_TEST_SANITIZED || !defined(__OPTIMIZE__)
enum { SEEDS = 500 };
#else
enum { SEEDS = 4000 };
#endif

TUTTI_TEST(closures_sim)
{
    if (getenv("TUTTI_TEST_SEED")) {
        sim_story(number_of("TUTTI_TEST_SEED", 0));
        return;
    }
    uint64_t seeds = number_of("TUTTI_TEST_SEEDS", SEEDS);
    for (uint64_t seed = 0; seed < seeds; seed++)
        sim_story(seed);
}
