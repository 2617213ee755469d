/* trace.c: rings per thread, kinds of events interned once, and the writer. */
#include "program/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/container.h"
#include "base/log.h"
#include "base/params.h"

static const tutti_param ring_param =
    TUTTI_PARAM("TRACE_RING", "1", "remember what ran when; 0 turns it off");
static const tutti_param file_param =
    TUTTI_PARAM("TRACE", "", "file to write the trace to, for Perfetto");

#define MOST_NAMES 100000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tutti_trace *rings;
static tutti_map kinds; /* operator, FLOPs and name → number */
static int threads;
static _Thread_local tutti_trace *mine;
static _Thread_local bool asked;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_exit; /* of a thread: its ring, which goes to the next new thread */

static void leave(void *ring)
{
    pthread_mutex_lock(&lock);
    ((tutti_trace *)ring)->idle = true;
    pthread_mutex_unlock(&lock);
}

static void make_key(void)
{
    pthread_key_create(&at_exit, leave);
}

/* A ring whose thread has ended, with that thread's events, or a new one. */
static tutti_trace *find_ring(void)
{
    for (tutti_trace *ring = rings; ring; ring = ring->next)
        if (ring->idle)
            return ring;
    tutti_trace *ring = calloc(1, sizeof *ring);
    if (ring) {
        ring->thread = threads++;
        ring->next = rings;
        rings = ring;
    }
    return ring;
}

tutti_status tutti__trace_check_setting(void)
{
    bool remembers;
    return tutti__param_switch(&ring_param, &remembers);
}

tutti_trace *tutti__trace_mine(void)
{
    if (asked)
        return mine;
    asked = true;
    if (!tutti__param_flag(&ring_param))
        return NULL;
    pthread_once(&once, make_key);
    pthread_mutex_lock(&lock);
    mine = find_ring();
    if (mine)
        mine->idle = false;
    pthread_mutex_unlock(&lock);
    if (mine)
        pthread_setspecific(at_exit, mine);
    return mine;
}

/* What events of one kind have in common. */
typedef struct kind {
    const char *name, *op; /* op: NULL when it is none's */
    double flops;          /* -1: not known */
} kind;
static TUTTI_VEC(kind) known; /* by number - 1 */

/* A kind's key ends in its name, which stays in the map. */
static uint32_t add_kind(const char *key, size_t prefix, const char *op, double flops)
{
    size_t number = known.count + 1;
    if (number > MOST_NAMES || !TUTTI_VEC_RESERVE_ONE(&known) ||
        tutti__map_set(&kinds, key, (void *)number) != TUTTI_OK)
        return 0;
    known.data[known.count++] =
        (kind){.name = kinds.entries[number - 1].key + prefix, .op = op, .flops = flops};
    return (uint32_t)number;
}

/* A node has another kind where its shapes, so its FLOPs, are others; in a process that has seen
 * very many shapes it has one more, of which they are not known. */
uint32_t tutti__trace_operator(const char *node, const char *op, double flops)
{
    tutti_text key = {0};
    pthread_mutex_lock(&lock);
    if (known.count >= MOST_NAMES / 2)
        flops = -1;
    pthread_mutex_unlock(&lock);
    tutti__text_add(&key, "%s %.17g ", op ? op : "", flops);
    size_t prefix = key.size;
    tutti__text_add(&key, "%s", node);
    if (key.failed) {
        tutti__text_free(&key);
        return 0;
    }
    pthread_mutex_lock(&lock);
    uint32_t number = (uint32_t)(uintptr_t)tutti__map_get(&kinds, key.data);
    if (number == 0)
        number = add_kind(key.data, prefix, op, flops);
    pthread_mutex_unlock(&lock);
    tutti__text_free(&key);
    return number;
}

uint32_t tutti__trace_name(const char *text)
{
    return tutti__trace_operator(text, NULL, 0);
}

static const kind *kind_of(uint32_t number)
{
    static const kind unknown = {.name = "?"};
    return number ? &known.data[number - 1] : &unknown;
}

void tutti__trace_visit(uint64_t since, void (*visit)(void *context, const tutti_trace_item *item),
                        void *context)
{
    pthread_mutex_lock(&lock);
    for (const tutti_trace *ring = rings; ring; ring = ring->next)
        for (uint64_t back = 1; back <= ring->count && back <= TUTTI_TRACE_RING; back++) {
            const tutti_trace_event *event =
                &ring->events[(ring->count - back) & (TUTTI_TRACE_RING - 1)];
            if (event->start < since)
                break;
            const kind *of = kind_of(event->name);
            visit(context, &(tutti_trace_item){.thread = ring->thread,
                                               .name = of->name,
                                               .op = of->op,
                                               .lane = kind_of(event->lane)->name,
                                               .start = event->start,
                                               .end = event->end});
        }
    pthread_mutex_unlock(&lock);
}

/* A JSON string: users' names may hold any byte. */
static void add_quoted(tutti_text *text, const char *name)
{
    tutti__text_add(text, "\"");
    for (const char *c = name; *c; c++) {
        if (*c == '"' || *c == '\\')
            tutti__text_add(text, "\\%c", *c);
        else if ((unsigned char)*c < 32)
            tutti__text_add(text, "\\u%04x", (unsigned char)*c);
        else
            tutti__text_add(text, "%c", *c);
    }
    tutti__text_add(text, "\"");
}

/* Where this process stands in its job. */
static _Atomic int place = -1;
static _Atomic int64_t ahead;

/* Ticks as microseconds of a monotonic clock. */
typedef struct dial {
    double us_per_tick, zero; /* zero: microseconds at tick 0 */
} dial;

static dial read_dial(void)
{
    dial c = {.us_per_tick = tutti__tick_ns() / 1000};
    int64_t now = tutti__now_ns() - ahead;
    c.zero = (double)now / 1000 - (double)tutti__ticks() * c.us_per_tick;
    return c;
}

static void add_comma(tutti_text *text)
{
    tutti__text_add(text, "%s\n", text->size > 0 ? "," : "");
}

/* The row of a thread is named by the device that it last worked for. */
static void write_names(const tutti_trace *ring, int process, tutti_text *text)
{
    const tutti_trace_event *last = &ring->events[(ring->count - 1) & (TUTTI_TRACE_RING - 1)];
    if (ring->count == 0)
        return;
    add_comma(text);
    tutti__text_add(text,
                    "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":"
                    "{\"name\":",
                    process, ring->thread);
    add_quoted(text, kind_of(last->lane)->name);
    tutti__text_add(text, "}}");
}

static void write_ring(const tutti_trace *ring, int process, const dial *c, tutti_text *text)
{
    uint64_t first = ring->count > TUTTI_TRACE_RING ? ring->count - TUTTI_TRACE_RING : 0;
    write_names(ring, process, text);
    for (uint64_t i = first; i < ring->count; i++) {
        const tutti_trace_event *event = &ring->events[i & (TUTTI_TRACE_RING - 1)];
        const kind *of = kind_of(event->name);
        add_comma(text);
        tutti__text_add(text, "{\"name\":");
        add_quoted(text, of->name);
        tutti__text_add(text, ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,",
                        kind_of(event->lane)->name, process, ring->thread);
        if (of->op)
            tutti__text_add(text, "\"args\":{\"op\":\"%s\"", of->op);
        if (of->op && of->flops >= 0)
            tutti__text_add(text, ",\"flops\":%.17g", of->flops);
        if (of->op)
            tutti__text_add(text, "},");
        tutti__text_add(text, "\"ts\":%.3f,\"dur\":%.3f}",
                        c->zero + (double)event->start * c->us_per_tick,
                        (double)(event->end - event->start) * c->us_per_tick);
    }
}

void tutti__trace_place(int rank, int64_t ahead_ns)
{
    place = rank;
    ahead = ahead_ns;
}

/* Rank r is process r + 1: some readers take process 0 for an idle one. */
void tutti__trace_events(tutti_text *text)
{
    dial c = read_dial();
    int rank = place, process = rank < 0 ? 1 : rank + 1;
    if (rank >= 0) {
        add_comma(text);
        tutti__text_add(text,
                        "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":"
                        "\"rank %d\"}},\n{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%d,"
                        "\"args\":{\"sort_index\":%d}}",
                        process, rank, process, rank);
    }
    pthread_mutex_lock(&lock);
    for (const tutti_trace *ring = rings; ring; ring = ring->next)
        write_ring(ring, process, &c, text);
    pthread_mutex_unlock(&lock);
}

tutti_status tutti__trace_write_events(const char *path, const tutti_text *events)
{
    tutti_text text = {0};
    const tutti_world *world = tutti__world();
    tutti__text_add(&text, "{\"traceEvents\":[");
    if (events->data)
        tutti__text_bytes(&text, events->data, events->size);
    tutti__text_add(&text, "\n]}\n");
    tutti_status status = text.failed || events->failed
                              ? tutti_fail(TUTTI_NO_MEMORY, "no memory to write the trace")
                              : world->write_file(world->self, path, text.data, text.size);
    tutti__text_free(&text);
    return status;
}

tutti_status tutti__trace_write(const char *path)
{
    tutti_text events = {0};
    tutti__trace_events(&events);
    tutti_status status = tutti__trace_write_events(path, &events);
    tutti__text_free(&events);
    return status;
}

const char *tutti__trace_path(void)
{
    return tutti__param_text(&file_param);
}

void tutti__trace_flush(void)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    const char *path = tutti__trace_path();
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    if (!path[0] || place >= 0 || tutti__trace_write(path) == TUTTI_OK)
        return;
    if (!atomic_flag_test_and_set(&told)) /* by the first session that is closed */
        tutti__log_job(TUTTI_LOG_WARNING, "TUTTI_TRACE: %s", tutti_error_message());
    tutti__error_restore(&before);
}
