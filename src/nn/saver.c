/* saver.c: a thread that writes while training goes on. */
#include "nn/saver.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/params.h"

static tutti_param deadline =
    TUTTI_PARAM("SAVE_DEADLINE", "600", "seconds that a checkpoint may take to be written");

struct tutti_saver {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    tutti_status (*work)(void *context); /* NULL: nothing to do */
    void *context;
    bool busy, ended;
    tutti_error error; /* of the last piece of work */
};

static void *run(void *argument)
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

tutti_status tutti__saver_create(tutti_saver **ret)
{
    tutti_saver *saver = calloc(1, sizeof *saver);
    if (!saver)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for saving in the background");
    pthread_mutex_init(&saver->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&saver->changed, &clock);
    pthread_condattr_destroy(&clock);
    if (pthread_create(&saver->thread, NULL, run, saver) != 0) {
        free(saver);
        return tutti_fail(TUTTI_NO_MEMORY, "no thread for saving in the background");
    }
    *ret = saver;
    return TUTTI_OK;
}

void tutti__saver_start(tutti_saver *saver, tutti_status (*work)(void *context), void *context)
{
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
    pthread_mutex_lock(&saver->lock);
    saver->ended = true;
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->lock);
    pthread_join(saver->thread, NULL);
    pthread_mutex_destroy(&saver->lock);
    pthread_cond_destroy(&saver->changed);
    free(saver);
}
