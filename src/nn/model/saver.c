/* saver.c: a thread that writes while training goes on; where there is none to be had, the caller
 * writes. */
#include "nn/model/saver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/params.h"

static tutti_param deadline =
    TUTTI_PARAM("SAVE_DEADLINE", "600", "seconds that a checkpoint may take to be written");

struct tutti_saver {
    pthread_t thread; /* of `process`; a child that was forked has none of it */
    pid_t process;    /* 0: no thread was begun */
    bool threaded;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    tutti_status (*work)(void *context); /* NULL: nothing to do */
    void *context;
    bool busy, ended;
    tutti_error error; /* of the last piece of work */
};

static void *saver_run(void *argument)
{
    tutti_saver *saver = argument;
    pthread_mutex_lock(&saver->lock);
    for (;;) {
        while (!saver->work && !saver->ended)
            pthread_cond_wait(&saver->changed, &saver->lock);
        if (!saver->work)
            break;
        tutti_status (*work)(void *) = saver->work;
        void *context = saver->context;
        saver->work = NULL;
        pthread_mutex_unlock(&saver->lock);
        tutti_status status = work(context);
        pthread_mutex_lock(&saver->lock);
        if (status != TUTTI_OK)
            tutti__error_capture(status, &saver->error);
        saver->busy = false;
        pthread_cond_broadcast(&saver->changed);
    }
    pthread_mutex_unlock(&saver->lock);
    return NULL;
}

static void init_locks(tutti_saver *saver)
{
    pthread_condattr_t clock;
    pthread_mutex_init(&saver->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&saver->changed, &clock);
    pthread_condattr_destroy(&clock);
}

/* In a child that was forked the thread is not there, its lock may be held for ever, and what it
 * was writing is the parent's. */
static void leave_parent(tutti_saver *saver)
{
    if (saver->process == 0 || saver->process == getpid())
        return;
    init_locks(saver);
    saver->process = 0;
    saver->threaded = saver->busy = false;
    saver->work = NULL;
    saver->error.status = TUTTI_OK;
}

static void begin_thread(tutti_saver *saver)
{
    int error = pthread_create(&saver->thread, NULL, saver_run, saver);
    saver->process = getpid();
    saver->threaded = error == 0;
    if (error != 0)
        tutti__log(TUTTI_LOG_WARNING,
                   "no thread can be started (%s), so checkpoints are not written beside the "
                   "training: it waits for them; look at `ulimit -u` and the limit of the group",
                   strerror(error));
}

tutti_status tutti__saver_create(tutti_saver **ret)
{
    tutti_saver *saver = calloc(1, sizeof *saver);
    if (!saver)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for saving in the background");
    init_locks(saver);
    *ret = saver;
    return TUTTI_OK;
}

void tutti__saver_start(tutti_saver *saver, tutti_status (*work)(void *context), void *context)
{
    leave_parent(saver);
    if (saver->process == 0)
        begin_thread(saver);
    if (!saver->threaded) {
        tutti_status status = work(context);
        if (status != TUTTI_OK)
            tutti__error_capture(status, &saver->error);
        return;
    }
    pthread_mutex_lock(&saver->lock);
    saver->work = work;
    saver->context = context;
    saver->busy = true;
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->lock);
}

tutti_status tutti__saver_wait(tutti_saver *saver)
{
    tutti_error error;
    struct timespec until;
    int waited = 0;
    leave_parent(saver);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)tutti__param_int(&deadline);
    pthread_mutex_lock(&saver->lock);
    while (saver->busy && waited == 0)
        waited = pthread_cond_timedwait(&saver->changed, &saver->lock, &until);
    if (saver->busy) {
        pthread_mutex_unlock(&saver->lock);
        return tutti_fail(TUTTI_DEADLINE,
                          "a checkpoint is still being written after %s s: is its disk or file "
                          "server stuck? TUTTI_SAVE_DEADLINE sets the limit",
                          tutti__param_text(&deadline));
    }
    error = saver->error;
    saver->error.status = TUTTI_OK;
    pthread_mutex_unlock(&saver->lock);
    return error.status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&error);
}

void tutti__saver_destroy(tutti_saver *saver)
{
    if (!saver)
        return;
    leave_parent(saver);
    if (saver->threaded) {
        pthread_mutex_lock(&saver->lock);
        saver->ended = true;
        pthread_cond_broadcast(&saver->changed);
        pthread_mutex_unlock(&saver->lock);
        pthread_join(saver->thread, NULL);
    }
    pthread_mutex_destroy(&saver->lock);
    pthread_cond_destroy(&saver->changed);
    free(saver);
}
