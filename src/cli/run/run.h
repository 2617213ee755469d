/* run.h: the launcher: one process launches, one station on each host starts and watches the ranks
 * there. A station is a fork of the launcher, or `tutti run --station` behind ssh; both speak the
 * same frames over two pipes.
 *
 * Nobody is left behind: a station that loses its launcher ends its ranks' process groups, and what
 * has left these (orphans.c); ranks that lose their station are killed by the system
 * (PR_SET_PDEATHSIG), and what they have started by the station's warden (warden.c); a launcher
 * that loses a station ends the others. */
#ifndef TUTTI_CLI_RUN_RUN_H
#define TUTTI_CLI_RUN_RUN_H

#include <signal.h>

#include "base/container.h"
#include "cluster/membership.h"

/* ---- frames: a type, a u32 of bytes (little-endian), the bytes ---- */

enum {
    /* to a station */
    TUTTI_FRAME_SECRET = 's',
    TUTTI_FRAME_VARIABLE = 'e', /* NAME=VALUE */
    TUTTI_FRAME_FOLDER = 'd',
    TUTTI_FRAME_ARGUMENT = 'a',
    TUTTI_FRAME_PLAN = 'p',    /* tutti_station_plan as text */
    TUTTI_FRAME_MEETING = 'm', /* host:port: start the ranks */
    TUTTI_FRAME_WINDOW =
        'w', /* "rows columns" of the terminal, for rank 0's; whenever they change */
    TUTTI_FRAME_SIGNAL = 'k', /* a number in text */
    TUTTI_FRAME_NEWS = 'n',   /* how a rank ended, for the others: a line */
    TUTTI_FRAME_AGAIN = 'r',  /* "rank 0|1 host:port": start it again; 1: to join those there */
    TUTTI_FRAME_FINISH = 'f', /* of a job with servers: no rank is started any more */
    /* from a station */
    TUTTI_FRAME_PORT = 'P',      /* "port address": rank 0's is bound; '-': address unknown */
    TUTTI_FRAME_OUTPUT = 'O',    /* u32 rank, u8 1 stdout or 2 stderr, bytes */
    TUTTI_FRAME_STARTED = 'S',   /* "rank process host" */
    TUTTI_FRAME_UNSTARTED = 'U', /* "rank host reason": it cannot be started */
    TUTTI_FRAME_ENDED = 'E',     /* "rank signal|exit number" */
    TUTTI_FRAME_MISSING = 'M',   /* "2 3": ranks that did not meet rank 0 in time */
    TUTTI_FRAME_VERDICT = 'V',   /* "rank failed\twaiting\trest": why its group failed */
    TUTTI_FRAME_KEEPER = 'K',    /* "rank port": it keeps the roster of an open job */
    TUTTI_FRAME_BEAT = 'B',      /* nothing else to say for TUTTI_STATION_BEAT_MS */
    TUTTI_RUN_FRAME_BYTES = 1 << 20,
    TUTTI_STATION_BEAT_MS = 1000,
};

typedef struct tutti_frame {
    char type;
    uint32_t size;
    char *data; /* NUL-terminated beyond size; valid until the next read */
} tutti_frame;

typedef struct tutti_frames {
    int fd;
    char *data;
    size_t size, capacity, used;
} tutti_frames;

/* Writes all of it; false when the other side is gone. */
bool tutti__frame_write(int fd, char type, const void *data, size_t size);
bool tutti__frame_text(int fd, char type, const char *format, ...) TUTTI_PRINTF(3, 4);
/* Reads what is there; false at the end or on an error. Call once for each readiness, then take
 * frames until there is none. */
bool tutti__frames_fill(tutti_frames *frames);
/* 1: a frame; 0: not whole yet; -1: malformed. */
int tutti__frames_next(tutti_frames *frames, tutti_frame *ret_frame);
void tutti__frames_free(tutti_frames *frames);

/* ---- the station ---- */

/* What a station is told of its ranks: `first` .. first+count-1 of `size`. */
typedef struct tutti_station_plan {
    int first, count, size, ps, epoch;
    int terminal; /* rank 0's output is a terminal's */
    int open;     /* bind rank 0's port on the network, not on loopback */
} tutti_station_plan;

/* Runs until its ranks have ended, or `in` has. */
int tutti__station_run(int in, int out);

/* ---- the launcher ---- */

typedef struct tutti_run_host {
    char name[256];
    int count;
    bool local;
    bool met;   /* its station was there in one of the starts */
    bool away;  /* it did not answer: left out of the last start */
    bool apart; /* it answers, but its ranks did not meet the others: left out from then on */
} tutti_run_host;

typedef struct tutti_run_job {
    TUTTI_VEC(tutti_run_host) hosts;
    TUTTI_VEC(const char *) variables; /* NAME=VALUE */
    char **program;                    /* NULL-terminated */
    const char *ssh, *remote;          /* "ssh -p 2222"; the path of tutti on the other side */
    int size, ps, restarts;
    int min_workers, host_wait; /* of a restart: ranks without ps; seconds */
    bool prefix, quiet;
    char secret[65];
} tutti_run_job;

enum {
    TUTTI_EXIT_TOO_FEW = 69, /* a restart found fewer workers than --min-workers (EX_UNAVAILABLE) */
    TUTTI_EXIT_SSH = 255,    /* a host was not reached: ssh's own code */
    TUTTI_EXIT_UNSTARTED = 71,    /* the system starts no further process (EX_OSERR) */
    TUTTI_EXIT_INTERRUPTED = 130, /* after Ctrl-C, SIGTERM and the like */
};

/* One start of the job; the exit code of the first rank that failed (128 + signal), 0 when none
 * did. *ret_interrupted: the user ended it. Hosts whose station came are `met`; those whose ranks
 * did not meet rank 0 `apart`. */
int tutti__launch(const tutti_run_job *job, int epoch, bool *ret_interrupted);

/* Asks all hosts that are not apart whether they are there, before a restart, and waits for those
 * that do not answer: job->host_wait seconds, a moment for those that were away already. Sets
 * `away`. 0, or the number of the signal that ended the wait. */
int tutti__muster(tutti_run_job *job);

/* Starts the job, and again after failures, with the hosts that are left; its exit code. */
int tutti__run_job(tutti_run_job *job);

/* ---- signals (signals.c) ---- */

/* That ask the job to end: Ctrl-C, SIGTERM, SIGQUIT, and SIGHUP unless nohup has it ignored. */
void tutti__signals_ending(sigset_t *ret_set);
/* That go to the ranks as they are, for programs that save or tell something then: SIGUSR1,
 * SIGUSR2. */
void tutti__signals_add_passed(sigset_t *set);
bool tutti__signal_passed(int number);
/* While there are no ranks to be told the former end the launcher, the latter do nothing. */
void tutti__signals_between_starts(void);

/* ---- hosts behind ssh (ssh.c) ---- */

/* Becomes `ssh HOST tutti run --station`; returns, after a complaint, when that is not possible. */
void tutti__ssh_run(const tutti_run_job *job, const char *host);
/* A station behind ssh begins with a mark: what a shell prints before it is not ours. */
bool tutti__ssh_greet(int out);
/* 1: the mark was read; 0: not yet; -1: it will not come, or is another version's. */
int tutti__ssh_greeted(tutti_frames *frames);
/* Says that no station came, and what to try. */
void tutti__ssh_failed(const tutti_run_job *job, const tutti_run_host *host,
                       const tutti_frames *frames);
/* By which address ssh came to this host; "-" when it did not. */
void tutti__ssh_own_address(char *ret_text, size_t size);
/* "host:port" of rank 0 as other ranks know it. `address`: by which ssh reached it, or "-". */
void tutti__ssh_meeting(const char *host, int port, const char *address, char *ret_text,
                        size_t size);

/* ---- output ---- */

typedef struct tutti_run_output {
    int rank;
    bool raw;
    tutti_text line[2]; /* what has no end yet, of stdout and stderr */
    char tail[2048];    /* the last of stderr, or of stdout where there is none */
    size_t tail_size;
} tutti_run_output;

/* `stream` 1 or 2. Whole lines, with "[rank] " before each unless raw. */
void tutti__output_add(tutti_run_output *output, int stream, const char *data, size_t size,
                       int width);
void tutti__output_end(tutti_run_output *output, int width);

/* ---- the outlet (outlet.c): the launcher's own stdout and stderr ---- */

/* Queues; `stream` 1 or 2. */
void tutti__outlet_put(int stream, const char *data, size_t size);
/* Writes what the reader takes without being waited for. */
void tutti__outlet_flush(void);
size_t tutti__outlet_waiting(void); /* bytes that the reader has not taken */
int tutti__outlet_fd(void);         /* to be polled for room; -1: nothing waits */
/* Nobody reads the launcher's output any more (`| head` has ended); nothing is printed since. */
bool tutti__outlet_closed(void);
/* Some of it could not be written (a full disk), which was said once. */
bool tutti__outlet_lost(void);

#endif
