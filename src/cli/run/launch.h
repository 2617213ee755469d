/* launch.h: a launch from inside. */
#ifndef TUTTI_CLI_RUN_LAUNCH_H
#define TUTTI_CLI_RUN_LAUNCH_H

#include <sys/types.h>

#include "cli/run/run.h"

typedef struct tutti_launch_rank {
    char host[256];
    int process;
    bool started, ended, by_signal;
    bool done;         /* with exit code 0, before any failure */
    int number;        /* exit code or signal */
    int starts;        /* again, in a job with servers */
    bool again;        /* it is to be started again */
    int64_t again_ns;  /* since when */
    bool unheard;      /* its station was not heard any more */
    char reason[1000]; /* why it could not be started, or its group failed; "": not known */
    char waiting[400]; /* who waits for the one that its group's reason names */
    tutti_run_output output;
} tutti_launch_rank;

typedef struct tutti_launch_station {
    pid_t process;
    int to; /* its stdin; -1: closed */
    tutti_frames from;
    int first, count;
    bool greeted, gone; /* greeted: it is there; local ones always are */
    int64_t heard_ns;   /* when it said something last */
    bool unheard;       /* it has not for too long: its ranks are given up */
} tutti_launch_station;

typedef struct tutti_launch {
    const tutti_run_job *job;
    int epoch, signals, width;
    tutti_launch_station *stations;
    tutti_launch_rank *ranks;
    int first_failed;        /* rank; -1: none */
    int interrupts;          /* Ctrl-C, SIGTERM and the like so far */
    int64_t signalled;       /* the last one, ns */
    int64_t watched_ns;      /* the last look at stations' silence */
    int64_t patience_until;  /* of the others, after a failure; 0: nothing failed */
    int force;               /* signals sent since: 0, SIGTERM, SIGKILL */
    bool open;               /* its program goes on without a rank that fails (servers.c) */
    int again_count;         /* of ranks that were started again */
    int keeper, keeper_port; /* who keeps the roster, where; -1: nobody yet */
    char meeting[300];       /* rank 0's, of the first start */
    char address[64];        /* by which rank 0's host was reached */
    bool finishing;          /* the workers have ended: so do the servers */
    bool finished;           /* all have ended, and stations know */
    bool unread;             /* nobody reads what the job prints: it was told to end */
    bool undelivered;        /* the user did not wait for the reader of the job's last words */
} tutti_launch;

/* A rank has failed; the others have a few seconds. */
void tutti__launch_fail(tutti_launch *l, int rank);

/* servers.c: jobs with parameter servers, whose program has an open roster: ranks end, and are
 * started again, one by one. */
bool tutti__servers_lost(tutti_launch *l, int rank); /* it failed; false: that ends the job */
void tutti__servers_watch(tutti_launch *l);
int tutti__servers_code(const tutti_launch *l);
void tutti__launch_tell(tutti_launch *l, int station, char type, const char *text); /* -1: all */

/* Gives up stations of which nothing is heard any more (silence.c). `held`: they are not read now,
 * since nobody takes what they say. */
void tutti__launch_watch(tutti_launch *l, bool held);

/* Says which rank failed first, and how. */
void tutti__launch_report(const tutti_launch *l);
/* Of the first rank that failed; 0 when none did. */
int tutti__launch_code(const tutti_launch *l);

#endif
