/* testing_sim.c: see testing_sim.h.
 *
 * What must hold, whatever happens:
 *  1. Every push that was acknowledged as applied or held is applied once; none twice.
 *  2. Leader and replica of a slot have the same bytes in the end.
 *  3. A retry never changes the verdict of its key.
 *  4. Under sync all gradients of an update are of its step; under ssp nobody reads too far ahead.
 *  5. Everybody who is alive comes to an end.
 *  6. An atomic push is applied on all its shards or on none; a process that is killed in the
 * middle of one included. */
#include "service/store/testing_sim.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"

uint64_t tutti__store_seed;

#define MS INT64_C(1000000)

static uint64_t sim_draw(sim *s, uint64_t below)
{
    return tutti__random_below((tutti_random_key){.seed = s->seed}, s->drawn++, below);
}

/* ---- the network ---- */

static bool earlier(const sim_letter *a, const sim_letter *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void heap_push(sim *s, sim_letter letter)
{
    SIM_HOLDS(TUTTI_VEC_PUSH(&s->letters, letter));
    size_t at = s->letters.count - 1;
    while (at > 0 && earlier(&letter, &s->letters.data[(at - 1) / 2])) {
        s->letters.data[at] = s->letters.data[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->letters.data[at] = letter;
}

static sim_letter heap_pop(sim *s)
{
    sim_letter first = s->letters.data[0], last = s->letters.data[--s->letters.count];
    size_t at = 0, count = s->letters.count;
    for (size_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && earlier(&s->letters.data[child + 1], &s->letters.data[child]))
            child++;
        if (!earlier(&s->letters.data[child], &last))
            break;
        s->letters.data[at] = s->letters.data[child];
        at = child;
    }
    if (count > 0)
        s->letters.data[at] = last;
    return first;
}

static void sim_send(void *context, uint32_t to, uint8_t *frame, size_t size)
{
    sim *s = context;
    if ((int)sim_draw(s, 100) < s->repeats) {
        uint8_t *copy = malloc(size);
        memcpy(copy, frame, size);
        heap_push(s, (sim_letter){s->now + 1 + (int64_t)sim_draw(s, (uint64_t)s->delay * 4),
                                  s->order++, to, copy, size});
    }
    if ((int)sim_draw(s, 100) < s->lossy) {
        free(frame);
        return;
    }
    heap_push(s, (sim_letter){s->now + 1 + (int64_t)sim_draw(s, (uint64_t)s->delay), s->order++, to,
                              frame, size});
}

/* ---- workers ---- */

static void worker_next(sim_worker *w);

/* 1 for shards in one slot each; a shard's slot. */
static uint32_t slot_of(const sim *s, uint32_t shard)
{
    return shard % (uint32_t)s->servers;
}

static void note_push(sim *s, uint32_t shard, uint32_t contribution, uint64_t step,
                      uint32_t verdict)
{
    for (int i = 0; i < s->push_count; i++) {
        sim_push *p = &s->pushes[i];
        if (p->shard == shard && p->contribution == contribution && p->step == step) {
            SIM_HOLDS(p->verdict == verdict || verdict == TUTTI_STORE_KNOWN);
            return;
        }
    }
    SIM_HOLDS(s->push_count < SIM_PUSHES);
    s->pushes[s->push_count++] = (sim_push){shard, contribution, verdict, step};
}

static void check_pulled(sim_worker *w, const tutti_store_message *answer)
{
    int bound = 0;
    SIM_HOLDS(answer->data.size % 24 == 0);
    if (sscanf(w->sim->consistency, "ssp:%d", &bound) == 1 && bound == 0)
        SIM_HOLDS(answer->version >= w->clock[answer->shard]);
    if (w->sim->atomic) { /* as of an atomic push: the same updates on all shards */
        SIM_HOLDS(answer->number == w->number);
        SIM_HOLDS(w->rows == SIZE_MAX || w->rows == answer->data.size || w->again);
        w->rows = answer->data.size;
    }
}

static void sim_answered(void *context, const tutti_store_message *answer)
{
    sim_worker *w = context;
    sim *s = w->sim;
    w->open--;
    if (answer->type == TUTTI_STORE_REFUSED && answer->reason == TUTTI_STORE_GONE)
        w->again = true;
    else if (answer->type == TUTTI_STORE_REFUSED)
        tutti__test_fail(__FILE__, __LINE__, "TUTTI_TEST_SEED=%llu: refused: %s",
                         (unsigned long long)s->seed, answer->text);
    if (answer->type == TUTTI_STORE_PULLED) {
        check_pulled(w, answer);
        w->version[answer->shard] = answer->version;
        if (answer->clock > w->clock[answer->shard])
            w->clock[answer->shard] = answer->clock;
    } else if (answer->type == TUTTI_STORE_PUSHED) {
        note_push(s, answer->shard, answer->contribution, answer->step, answer->verdict);
        uint64_t own = answer->step + 1;
        w->clock[answer->shard] = answer->clock > own ? answer->clock : own;
    } else if (answer->type == TUTTI_STORE_NUMBERED) {
        w->number = answer->version + 1;
        for (size_t i = 0; i < tutti__store_row_count(answer); i++)
            w->after[i] = (uint64_t)tutti__store_row(answer, i);
    } else if (answer->type == TUTTI_STORE_PREPARED) {
        w->clock[answer->shard]++;
    } else if (answer->type == TUTTI_STORE_COMMITTED) {
        for (uint32_t shard = 0; shard < (uint32_t)s->shards; shard++)
            note_push(s, shard, answer->contribution, w->clock[shard] - 1, TUTTI_STORE_APPLIED);
    }
    if (w->open == 0)
        worker_next(w);
}

static void ask(sim_worker *w, tutti_store_message *m)
{
    w->open++;
    SIM_HOLDS(tutti__store_client_call(&w->client, m, sim_answered, w, w->sim->now) == TUTTI_OK);
}

static void ask_commit(sim_worker *w)
{
    static const uint8_t slots[8 * SIM_SERVERS] = {0, [8] = 1, [16] = 2};
    int count = w->sim->shards < w->sim->servers ? w->sim->shards : w->sim->servers;
    tutti_store_message m = {
        .type = TUTTI_STORE_COMMIT, .number = w->txns, .rows = {slots, 8 * (size_t)count}};
    ask(w, &m);
}

static void ask_shard(sim_worker *w, uint32_t shard)
{
    static const uint8_t element[8] = {0};
    sim *s = w->sim;
    tutti_store_message m = {.slot = slot_of(s, shard), .shard = shard};
    if (w->phase == 0) {
        static const uint8_t dims[8] = {1};
        m.type = TUTTI_STORE_CREATE;
        m.dtype = TUTTI_I64;
        m.rows = (tutti_packed_data){dims, 8};
        snprintf(m.text, sizeof m.text, "shard %u", shard);
        snprintf(m.consistency, sizeof m.consistency, "%s", s->consistency);
        snprintf(m.rule, sizeof m.rule, "keys");
    } else if (w->phase == 1) {
        m.type = TUTTI_STORE_PULL;
        m.form = TUTTI_STORE_DENSE;
        m.clock = w->clock[shard];
        m.number = w->number;
        m.after = w->after[m.slot];
    } else {
        m.type = s->atomic ? TUTTI_STORE_PREPARE : TUTTI_STORE_PUSH;
        m.number = s->atomic ? w->txns : 0;
        m.form = TUTTI_STORE_DENSE;
        m.step = w->clock[shard];
        m.version = w->version[shard];
        m.factor = m.learning_rate = 1;
        m.data = (tutti_packed_data){element, 8};
    }
    ask(w, &m);
}

/* All answers are there: what comes next. */
static void worker_next(sim_worker *w)
{
    sim *s = w->sim;
    if (w->phase == 2 && s->atomic) {
        w->phase = 3;
        ask_commit(w);
        return;
    }
    if (w->phase == 2 || w->phase == 3) {
        w->steps++;
        w->phase = 0;
    }
    if (w->steps >= SIM_STEPS) {
        w->phase = 4;
        return;
    }
    bool read = w->phase == 5 || (w->phase == 0 && !s->atomic);
    if (s->atomic && (w->phase == 0 || (w->phase == 1 && w->again))) {
        tutti_store_message m = {.type = TUTTI_STORE_NUMBER};
        w->phase = 5;
        w->again = false;
        w->rows = SIZE_MAX;
        ask(w, &m);
        return;
    }
    w->phase = read ? 1 : 2;
    if (w->phase == 2)
        w->txns++;
    for (uint32_t shard = 0; shard < (uint32_t)s->shards; shard++)
        ask_shard(w, shard);
}

static void worker_start(sim *s, int number)
{
    sim_worker *w = &s->worker[number];
    uint64_t steps = w->steps;
    uint32_t incarnation = w->incarnation + 1;
    /* A process that begins anew knows no clocks, only that it is to go on with its steps. */
    *w = (sim_worker){.sim = s,
                      .index = number,
                      .alive = true,
                      .incarnation = incarnation,
                      .steps = steps,
                      .txns = (uint64_t)incarnation << 32};
    tutti__store_client_init(&w->client,
                             &(tutti_store_client_options){.node = SIM_SERVERS + (uint32_t)number,
                                                           .incarnation = incarnation,
                                                           .contribution = (uint32_t)number,
                                                           .transport = {s, sim_send},
                                                           .retry_ns = 20 * MS});
}

/* ---- views ---- */

static void server_start(sim *s, int number)
{
    SIM_HOLDS(tutti__store_server_create(
                  &(tutti_store_server_options){.node = (uint32_t)number,
                                                .incarnation = ++s->server_incarnation[number],
                                                .transport = {s, sim_send},
                                                .find = tutti__store_testing_rule,
                                                .retry_ns = 20 * MS,
                                                .piece = 64 + sim_draw(s, 400)},
                  &s->server[number]) == TUTTI_OK);
}

/* Another server that is alive, from a random one on. */
static uint32_t draw_replica(sim *s, uint32_t leader)
{
    int from = (int)sim_draw(s, (uint64_t)s->servers);
    for (int i = 0; i < s->servers; i++) {
        uint32_t n = (uint32_t)((from + i) % s->servers);
        if (n != leader && s->server[n])
            return n;
    }
    return TUTTI_STORE_NOBODY;
}

static void decide_places(sim *s)
{
    for (uint32_t slot = 0; slot < (uint32_t)s->servers; slot++) {
        tutti_store_place *p = &s->place[slot];
        bool leads = p->leader != TUTTI_STORE_NOBODY && s->server[p->leader] &&
                     tutti__store_server_complete(s->server[p->leader], slot);
        bool fresh = s->view == 0;
        if (!fresh && !leads) {
            SIM_HOLDS(p->replica != TUTTI_STORE_NOBODY && s->server[p->replica] &&
                      tutti__store_server_complete(s->server[p->replica], slot));
            p->leader = p->replica;
            p->replica = TUTTI_STORE_NOBODY;
        }
        p->fresh = fresh;
        if (!s->replicas)
            p->replica = TUTTI_STORE_NOBODY;
        else if (p->replica == TUTTI_STORE_NOBODY || !s->server[p->replica])
            p->replica = draw_replica(s, p->leader);
    }
}

/* All that are alive hear of it at about the same time; workers perhaps a little later. */
static void sim_view(sim *s)
{
    tutti_store_process processes[SIM_SERVERS + SIM_WORKERS];
    decide_places(s);
    tutti_store_view view = {.number = ++s->view,
                             .slot_count = (size_t)s->servers,
                             .servers = processes,
                             .slots = s->place};
    for (int i = 0; i < s->servers; i++)
        if (s->server[i])
            processes[view.server_count++] =
                (tutti_store_process){(uint32_t)i, s->server_incarnation[i], 0};
    view.workers = processes + view.server_count;
    for (int i = 0; i < s->workers; i++)
        if (s->worker[i].alive)
            processes[view.server_count + view.worker_count++] = (tutti_store_process){
                SIM_SERVERS + (uint32_t)i, s->worker[i].incarnation, (uint32_t)i};
    for (int i = 0; i < s->servers; i++)
        if (s->server[i])
            SIM_HOLDS(tutti__store_server_view(s->server[i], &view, s->now) == TUTTI_OK);
    for (int i = 0; i < s->workers; i++) {
        sim_worker *w = &s->worker[i];
        if (!w->alive)
            continue;
        SIM_HOLDS(tutti__store_client_view(&w->client, &view, s->now) == TUTTI_OK);
        if (w->phase == 0 && w->open == 0 && w->steps < SIM_STEPS)
            for (uint32_t shard = 0; shard < (uint32_t)s->shards; shard++)
                ask_shard(w, shard);
    }
}

/* ---- faults ---- */

/* Every slot must have another that is complete. */
static bool may_kill(const sim *s, uint32_t server)
{
    for (uint32_t slot = 0; slot < (uint32_t)s->servers; slot++) {
        const tutti_store_place *p = &s->place[slot];
        uint32_t other = p->leader == server ? p->replica : p->leader;
        if (p->leader != server && p->replica != server)
            continue;
        if (other == TUTTI_STORE_NOBODY || !s->server[other] ||
            !tutti__store_server_complete(s->server[other], slot))
            return false;
    }
    return true;
}

static void sim_fault(sim *s)
{
    int n = (int)sim_draw(s, 3);
    if (sim_draw(s, 2) == 0 && s->replicas && n < s->servers) {
        if (!s->server[n]) {
            server_start(s, n);
        } else if (may_kill(s, (uint32_t)n)) {
            tutti__store_server_free(s->server[n]);
            s->server[n] = NULL;
            s->kills++;
            if (sim_draw(s, 2) == 0) /* back before anybody has seen it gone */
                server_start(s, n);
        }
    } else if (n < s->workers) {
        if (s->worker[n].steps >= SIM_STEPS) {
            ; /* it has ended */
        } else if (!s->worker[n].alive) {
            worker_start(s, n);
        } else if (s->worker[n].phase != 4) {
            s->worker[n].alive = false;
            tutti__store_client_free(&s->worker[n].client);
            s->kills++;
        }
    }
    s->faults--;
    s->view_at = s->now + (int64_t)sim_draw(s, 100 * MS);
    s->next_fault = s->view_at + 1 + (int64_t)sim_draw(s, 100 * MS);
}

/* ---- a story ---- */

static void sim_begin(sim *s, uint64_t seed)
{
    static const char *const consistencies[] = {"async",      "sync",  "sync:backup=1",
                                                "ssp:0",      "ssp:2", "softsync:1",
                                                "softsync:2", "async", "sync"};
    *s = (sim){.seed = seed};
    tutti__store_seed = seed;
    s->servers = 1 + (int)sim_draw(s, SIM_SERVERS);
    s->workers = 1 + (int)sim_draw(s, SIM_WORKERS);
    s->shards = 1 + (int)sim_draw(s, SIM_SHARDS);
    s->replicas = s->servers > 1 && sim_draw(s, 4) > 0;
    s->consistency = consistencies[sim_draw(s, TUTTI_COUNT(consistencies))];
    s->atomic = strcmp(s->consistency, "async") == 0 && sim_draw(s, 2) == 0;
    s->delay = MS * (int64_t)(1 + sim_draw(s, 20));
    s->lossy = sim_draw(s, 2) == 0 ? 0 : (int)sim_draw(s, 20);
    s->repeats = sim_draw(s, 2) == 0 ? 0 : (int)sim_draw(s, 20);
    s->faults = sim_draw(s, 4) == 0 ? 0 : (int)sim_draw(s, 6);
    s->next_fault = s->faults > 0 ? 1 + (int64_t)sim_draw(s, 200 * MS) : INT64_MAX;
    s->view_at = INT64_MAX;
    for (int i = 0; i < s->servers; i++) {
        server_start(s, i);
        s->place[i] = (tutti_store_place){(uint32_t)i, TUTTI_STORE_NOBODY, true};
    }
    for (int i = 0; i < s->workers; i++)
        worker_start(s, i);
    sim_view(s);
}

static void deliver(sim *s, const sim_letter *l)
{
    if (l->to < SIM_SERVERS) {
        if (s->server[l->to])
            tutti__store_server_receive(s->server[l->to], l->frame, l->size, s->now);
    } else if (s->worker[l->to - SIM_SERVERS].alive) {
        tutti__store_client_receive(&s->worker[l->to - SIM_SERVERS].client, l->frame, l->size,
                                    s->now);
    }
    free(l->frame);
}

static bool is_over(const sim *s)
{
    for (int i = 0; i < s->workers; i++)
        if (s->worker[i].alive && s->worker[i].phase != 4)
            return false;
    for (int i = 0; i < s->servers; i++)
        if (s->server[i] && !tutti__store_server_is_idle(s->server[i]))
            return false;
    return s->view_at == INT64_MAX && s->faults <= 0;
}

/* Under sync and ssp a worker that has ended is gone; the others do not wait for it. */
static void retire(sim *s)
{
    for (int i = 0; i < s->workers; i++)
        if (s->worker[i].alive && s->worker[i].phase == 4) {
            s->worker[i].alive = false;
            tutti__store_client_free(&s->worker[i].client);
            if (s->view_at == INT64_MAX)
                s->view_at = s->now + 1 + (int64_t)sim_draw(s, 20 * MS);
        }
}

static void sim_tick(sim *s)
{
    if (s->now >= s->next_fault && s->faults > 0)
        sim_fault(s);
    if (s->now >= s->view_at) {
        s->view_at = INT64_MAX;
        sim_view(s);
    }
    retire(s);
    for (int i = 0; i < s->servers; i++)
        if (s->server[i])
            tutti__store_server_tick(s->server[i], s->now);
    for (int i = 0; i < s->workers; i++)
        if (s->worker[i].alive)
            tutti__store_client_tick(&s->worker[i].client, s->now);
}

/* ---- what must hold ---- */

static const int64_t *applied_to(sim *s, uint32_t shard, int64_t *ret_count)
{
    const tutti_store_place *p = &s->place[slot_of(s, shard)];
    tutti_store_shard *found = tutti__store_slot_shard(
        tutti__store_server_slot(s->server[p->leader], slot_of(s, shard)), shard);
    tutti_store_message all = {.form = TUTTI_STORE_DENSE};
    tutti_tensor *value = NULL;
    uint64_t version;
    *ret_count = 0;
    if (!found)
        return NULL;
    SIM_HOLDS(tutti__store_shard_read(found, &all, &value, &version) == TUTTI_OK);
    *ret_count = tutti_tensor_dims(value)[0];
    const int64_t *data = tutti_tensor_data(value);
    tutti_tensor_release(value); /* the shard holds it */
    return data;
}

static int count_key(const int64_t *applied, int64_t count, uint64_t step, uint32_t contribution)
{
    int found = 0;
    for (int64_t i = 0; i < count; i++)
        found += applied[3 * i + 1] == (int64_t)step && applied[3 * i + 2] == contribution;
    return found;
}

static bool is_still_held(sim *s, const sim_push *push)
{
    uint32_t slot = slot_of(s, push->shard);
    tutti_store_shard *shard = tutti__store_slot_shard(
        tutti__store_server_slot(s->server[s->place[slot].leader], slot), push->shard);
    for (size_t i = 0; i < shard->held.count; i++)
        if (shard->held.data[i].key.step == push->step &&
            shard->held.data[i].key.contribution == push->contribution)
            return true;
    return false;
}

static void check_pushes(sim *s)
{
    for (int i = 0; i < s->push_count; i++) {
        const sim_push *p = &s->pushes[i];
        int64_t count;
        const int64_t *applied = applied_to(s, p->shard, &count);
        int found = count_key(applied, count, p->step, p->contribution);
        if (p->verdict == TUTTI_STORE_APPLIED)
            SIM_HOLDS(found == 1);
        else if (p->verdict == TUTTI_STORE_HELD)
            SIM_HOLDS(found == 1 || (found == 0 && is_still_held(s, p)));
        else if (p->verdict == TUTTI_STORE_LATE)
            SIM_HOLDS(found == 0);
    }
    for (uint32_t shard = 0; shard < (uint32_t)s->shards; shard++) {
        int64_t count;
        const int64_t *applied = applied_to(s, shard, &count);
        bool steps =
            strncmp(s->consistency, "sync", 4) == 0 || strcmp(s->consistency, "ssp:0") == 0;
        for (int64_t i = 0; i < count; i++) {
            SIM_HOLDS(count_key(applied, count, (uint64_t)applied[3 * i + 1],
                                (uint32_t)applied[3 * i + 2]) == 1);
            SIM_HOLDS(!steps || applied[3 * i] == applied[3 * i + 1]);
        }
    }
}

/* An atomic push moved all shards or none; shards have them in one order. */
static void check_atomic(sim *s)
{
    int64_t first_count, count;
    const int64_t *first = applied_to(s, 0, &first_count);
    for (uint32_t shard = 1; s->atomic && shard < (uint32_t)s->shards; shard++) {
        const int64_t *applied = applied_to(s, shard, &count);
        SIM_HOLDS(count == first_count);
        for (int64_t i = 0; i < count; i++)
            SIM_HOLDS(applied[3 * i + 2] == first[3 * i + 2]);
    }
}

static void check_replicas(sim *s)
{
    for (uint32_t slot = 0; slot < (uint32_t)s->servers; slot++) {
        tutti_text a = {0}, b = {0};
        const tutti_store_place *p = &s->place[slot];
        if (p->replica == TUTTI_STORE_NOBODY)
            continue;
        SIM_HOLDS(tutti__store_server_complete(s->server[p->replica], slot));
        SIM_HOLDS(tutti__store_slot_save(tutti__store_server_slot(s->server[p->leader], slot),
                                         &a) == TUTTI_OK);
        SIM_HOLDS(tutti__store_slot_save(tutti__store_server_slot(s->server[p->replica], slot),
                                         &b) == TUTTI_OK);
        SIM_HOLDS(a.size == b.size && memcmp(a.data, b.data, a.size) == 0);
        tutti__text_free(&a);
        tutti__text_free(&b);
    }
}

static void sim_free(sim *s)
{
    for (int i = 0; i < s->servers; i++)
        tutti__store_server_free(s->server[i]);
    for (int i = 0; i < s->workers; i++)
        tutti__store_client_free(&s->worker[i].client);
    for (size_t i = 0; i < s->letters.count; i++)
        free(s->letters.data[i].frame);
    TUTTI_VEC_FREE(&s->letters);
}

/* Somebody waits for ever: who, for what. */
static void sim_stuck(const sim *s)
{
    tutti_text text = {0};
    for (int i = 0; i < s->workers; i++) {
        const sim_worker *w = &s->worker[i];
        tutti__text_add(&text, " worker %d%s phase %d step %d", i, w->alive ? "" : " (gone)",
                        w->phase, (int)w->steps);
        for (size_t c = 0; c < w->client.calls.count; c++)
            tutti__text_add(&text, " %s %u",
                            tutti__store_type_text(w->client.calls.data[c].message.type),
                            w->client.calls.data[c].message.shard);
    }
    for (int i = 0; i < s->servers; i++)
        if (s->server[i]) {
            tutti__text_add(&text, "\nserver %d: ", i);
            tutti__store_server_print(s->server[i], &text);
        }
    tutti__test_fail(__FILE__, __LINE__, "TUTTI_TEST_SEED=%llu (%s%s): never ends:%s",
                     (unsigned long long)s->seed, s->consistency, s->atomic ? ", atomic" : "",
                     text.data);
}

void store_sim_run(uint64_t seed)
{
    const int64_t tick = 10 * MS, limit = 120000 * MS;
    sim s;
    sim_begin(&s, seed);
    for (int64_t next = tick; !is_over(&s); next += tick) {
        while (s.letters.count > 0 && s.letters.data[0].at <= next) {
            sim_letter letter = heap_pop(&s);
            s.now = letter.at;
            deliver(&s, &letter);
        }
        s.now = next;
        if (s.now >= limit)
            sim_stuck(&s);
        sim_tick(&s);
    }
    check_pushes(&s);
    check_atomic(&s);
    check_replicas(&s);
    sim_free(&s);
}
