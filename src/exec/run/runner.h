/* runner.h: threads that drive devices: one for each device of a run, beside the caller's. They
 * may wait for each other, so each task has a thread of its own; threads stay for the next run. */
#ifndef TUTTI_EXEC_RUN_RUNNER_H
#define TUTTI_EXEC_RUN_RUNNER_H

#include "base/status.h"

typedef struct tutti_driver_thread tutti_driver_thread;

/* Starts task(context) on a thread; NULL when the system has no more. */
tutti_driver_thread *tutti__driver_start(void (*task)(void *context), void *context);
/* Waits for its end; the thread is free again. A task ends by its run's deadline: waiting for it
 * needs none of its own. */
void tutti__driver_wait(tutti_driver_thread *driver);

#endif
