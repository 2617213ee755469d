/* station.h: a station from inside. */
#ifndef TUTTI_CLI_RUN_STATION_H
#define TUTTI_CLI_RUN_STATION_H

#include <sys/ioctl.h>
#include <sys/types.h>

#include "cli/run/run.h"

typedef struct tutti_station_rank {
    int number;
    pid_t process; /* 0: ended and reported */
    int status;    /* of waitpid */
    bool ended;    /* seen, its output perhaps not read to the end */
    int output[2]; /* we read its stdout and stderr; -1: at the end */
    int news;      /* we write how others ended; ranks write who is missing, why they end, and who
                      keeps an open roster */
} tutti_station_rank;

typedef struct tutti_station {
    int out, signals, listener, secret_fd;
    int64_t beat_ns;        /* when it spoke of itself last */
    int64_t quiet_until_ns; /* output of a dead rank's children is read no longer than that */
    tutti_station_plan plan;
    struct winsize window; /* of rank 0's terminal; all 0: not known */
    tutti_frames in;
    TUTTI_VEC(char *) arguments;
    char meeting[300];
    tutti_station_rank *ranks;
    bool started, lost;
    bool finish; /* of a job with servers: no rank is started again */
} tutti_station;

/* The station's own process: tutti__station_run without its warden. */
int tutti__station_work(int in, int out);

/* Starts rank number `local` of this host and reports it; false with errno when that is not
 * possible. `joins`: the job is there already, at s->meeting. */
bool tutti__station_start(tutti_station *s, int local, bool joins);

/* From now on this process is the parent of what its descendants leave behind; and ending all its
 * children, and theirs. */
void tutti__orphans_adopt(void);
void tutti__orphans_end(void);

#endif
