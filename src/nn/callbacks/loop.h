/* loop.h: hand-written loops from inside: what is shown of them, and what is kept. */
#ifndef TUTTI_NN_CALLBACKS_LOOP_H
#define TUTTI_NN_CALLBACKS_LOOP_H

#include "exec/plan/plan.h"
#include "nn/callbacks/checkpoint.h"
#include "nn/model/saver.h"

/* What --save and --resume keep of a loop. */
typedef struct tutti_loop_saving {
    tutti_engine *engine; /* whose state; NULL: nothing is kept */
    tutti_model *model;   /* whose engine it is, or NULL */
    tutti_eager *eager;   /* the same */
    char *path;           /* of --save, or NULL */
    char *checkpoint;     /* "<path>.checkpoint" */
    tutti_saver *saver;   /* made when the first is saved */
    tutti_pace pace;
} tutti_loop_saving;

/* What is said of its steps before they are taken. */
enum { TUTTI_LOOP_PROGRAMS = 8 };
typedef struct tutti_loop_forecast {
    tutti_engine *engine; /* that is watched, or NULL */
    char name[64];        /* of the program */
    bool plans_only;      /* `tutti plan`: for a cluster that is not there, and no training */
    int count;
    uint64_t updates[TUTTI_LOOP_PROGRAMS]; /* of the programs that were spoken of */
    tutti_forecast_past past;
} tutti_loop_forecast;

struct tutti_progress {
    tutti_fit fit; /* without a model: its event always has logs */
    tutti_job *job;
    int epochs;
    int64_t steps;  /* of an epoch; 0: not known */
    bool begun;     /* an epoch is under way */
    bool goes_on;   /* the next epoch was begun before the checkpoint */
    bool listening; /* Ctrl-C sets a flag */
    bool together;  /* which counts when all processes have heard of it */
    int64_t asked;  /* the step from which on processes ask each other again */
    bool halted;    /* it was interrupted inside an epoch, and saved there */
    tutti_logs logs;
    int64_t counts[TUTTI_LOGS]; /* values in the mean; 0: set */
    tutti_loop_saving save_resume;
    tutti_loop_forecast forecast;
};

/* ---- loop_forecast.c ---- */
/* Watches the loop's engine where somebody is to be told. */
tutti_status tutti__loop_foretell(tutti_progress *progress, const tutti_progress_options *options);
/* The training is over: nobody watches any more. */
void tutti__loop_foretold(tutti_progress *progress);

/* ---- loop_keep.c ---- */
/* With --save or --resume: tries the place, and restores what was kept. */
tutti_status tutti__loop_keep(tutti_progress *progress, const tutti_progress_options *options);
/* After a step that is not its epoch's last: saves when it is time to. */
tutti_status tutti__loop_kept_step(tutti_progress *progress);
/* Saves between two epochs, of which fit.done are over. */
tutti_status tutti__loop_kept_epoch(tutti_progress *progress);
/* Waits for what is being written, and writes the weights. */
tutti_status tutti__loop_kept_end(tutti_progress *progress);
void tutti__loop_saving_free(tutti_loop_saving *save_resume);

#endif
