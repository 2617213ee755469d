/* world.c: the world in force; the real one's clocks. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "base/world.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/world_files.h"
#include "base/world_sockets.h"

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t real_now_ns(void *self)
{
    TUTTI_UNUSED(self);
    return clock_ns(CLOCK_MONOTONIC);
}

static int64_t real_wall_ns(void *self)
{
    TUTTI_UNUSED(self);
    return clock_ns(CLOCK_REALTIME);
}

static void real_sleep_ns(void *self, int64_t ns)
{
    TUTTI_UNUSED(self);
    if (ns <= 0)
        return;
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000),
                            .tv_nsec = (long)(ns % 1000000000)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static const tutti_world real_world = {
    .now_ns = real_now_ns,
    .wall_ns = real_wall_ns,
    .sleep_ns = real_sleep_ns,
    .read_file = tutti__real_read_file,
    .map_file = tutti__real_map_file,
    .unmap_file = tutti__real_unmap_file,
    .write_file = tutti__real_write_file,
    .make_folder = tutti__real_make_folder,
    .open_file = tutti__real_open_file,
    .read_at = tutti__real_read_at,
    .write_at = tutti__real_write_at,
    .sync_file = tutti__real_sync_file,
    .close_file = tutti__real_close_file,
    .list_folder = tutti__real_list_folder,
    .remove_file = tutti__real_remove_file,
    .link_file = tutti__real_link_file,
    .remove_abandoned = tutti__real_remove_abandoned,
    .resolve = tutti__real_resolve,
    .listen = tutti__real_listen,
    .accept = tutti__real_accept,
    .connect = tutti__real_connect,
    .connected = tutti__real_connected,
    .send = tutti__real_send,
    .receive = tutti__real_receive,
    .wait = tutti__real_wait,
    .end_sending = tutti__real_end_sending,
    .close_socket = tutti__real_close_socket,
};
static const tutti_world *current = &real_world;

const tutti_world *tutti__world(void)
{
    return current;
}

void tutti__world_replace(const tutti_world *world)
{
    current = world != NULL ? world : &real_world;
}

static double tick_ns;

/* The tick counter belongs to the machine, so it is measured against the real clock always. */
static void calibrate_ticks(void)
{
#if defined(__aarch64__)
    uint64_t frequency;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(frequency));
    tick_ns = frequency > 0 ? 1e9 / (double)frequency : 1.0;
#elif defined(__x86_64__)
    int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t start = tutti__ticks();
    int64_t ns;
    do
        ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
    while (ns < 5000000);
    uint64_t ticks = tutti__ticks() - start;
    tick_ns = ticks > 0 ? (double)ns / (double)ticks : 1.0;
#else
    tick_ns = 1.0;
#endif
}

double tutti__tick_ns(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, calibrate_ticks);
    return tick_ns;
}
