/* job.h: the job from inside. */
#ifndef TUTTI_BASE_JOB_H
#define TUTTI_BASE_JOB_H

#include "base/arena.h"
#include "base/container.h"
#include "tutti/job.h"

typedef struct tutti_owned {
    void *object;
    void (*destroy)(void *object);
} tutti_owned;

struct tutti_job {
    tutti_error error; /* the first */
    int exit_code;     /* for that error */
    bool helped;       /* --help was answered; nothing more is to be done */
    tutti_map flags;   /* name → what was given; see flags.c */
    tutti_arena arena; /* for what lives as long as the job */
    TUTTI_VEC(tutti_owned) owned;
    uint64_t seed;
    char program[64]; /* argv[0]'s last part */
    void *strategy;   /* dist's; owned like anything else */
    bool silent;      /* another process of the job prints */
    char *unknown;    /* the first flag that nobody understands, or NULL */
    int notes;        /* how often something was noted; */
    char note[1024];  /* the last of it */
};

/* What went wrong and is no error of the job: tutti_close says it, since the log has no reader
 * unless a program installed one. */
void tutti__job_note(tutti_job *job, const char *text);

/* Inside a function that makes something: false when the job is NULL or has failed. */
static inline bool tutti__job_able(const tutti_job *job)
{
    return job && job->error.status == TUTTI_OK && !job->helped;
}

/* Nothing more is to be done, and that is no error: as after --help. */
static inline void tutti__job_stop(tutti_job *job)
{
    job->helped = true;
}

/* Takes the flags out of argv; holds those of command line and environment to what they may be, and
 * sets what follows from them; at the end, says which nobody has asked for. */
void tutti__flags_read(tutti_job *job, int *argc, char **argv);
void tutti__flags_apply(tutti_job *job);
void tutti__flags_unread(tutti_job *job);
/* From now on any other argument is an unknown flag as well, as for the examples inside the
 * command.
 */
void tutti__flags_alone(void);
/* Makes an unknown flag the job's error. */
void tutti__flags_refuse(tutti_job *job);

/* Releases everything, like tutti_close, and says nothing. */
void tutti__job_discard(tutti_job *job);

/* The signal that asked to end, or 0; and one that another process of the job got. */
int tutti__interrupt_signal(void);
void tutti__interrupt_hear(int number);
/* From on to off, a signal to this process counts as asked for (tutti_interrupted, tutti_job_ok)
 * only when it is heard by tutti__interrupt_hear: after the same step on all processes, and for all
 * who look during a step alike. They nest. */
void tutti__interrupt_defer(bool on);
/* Whether the signal was SIGTERM: a scheduler wants the machine back. */
bool tutti__preempted(void);

/* Between these Ctrl-C sets a flag instead of ending the process. They nest. */
void tutti__interrupt_begin(void);
void tutti__interrupt_end(void);

#endif
