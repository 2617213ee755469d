/* job.h: what a training program holds from its first line to its last.
 *
 *     tutti_job *job = tutti_open(&argc, &argv);
 *     …datasets, models, fit…
 *     return tutti_close(job);
 *
 * A job owns what is made with it: nothing has to be released one by one. Calls need no checking:
 * the job carries the first error, later calls do nothing, and tutti_close reports it. */
#ifndef TUTTI_JOB_H
#define TUTTI_JOB_H

#include "tutti/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_job tutti_job;

/* Takes the flags that every program understands out of argv and leaves the others there:
 *     --data DIR  --epochs N  --steps-per-epoch N  --batch N  --seed N  --threads N  --lr RATE
 *     --device NAME  --strategy NAME  --devices LIST  --precision f32|bf16|f16  --deterministic
 *     --save FILE  --logs DIR  --resume  --quiet  --json  --set KEY=VALUE  --help
 * One that is left and begins with a dash is a mistake, and the job's error as soon as something is
 * made with it, unless tutti_own_flags says otherwise; other arguments are the program's.
 * Each can be given by environment as well: TUTTI_EPOCHS and so on, TUTTI_QUIET=on; the command
 * line wins. A value that a flag cannot have is the job's error, also where nobody reads it. What
 * stands behind a lone "--" are no flags: it stays in argv, with the "--". What is closed of
 * standard input, output and error is opened as /dev/null, so that no file of the program's takes
 * its place. Both pointers may be NULL. Never NULL: when memory is short the job carries that
 * error. */
TUTTI_API tutti_job *tutti_open(int *argc, char ***argv);

/* What a program returns that was asked by SIGTERM to end, and has saved: start it again with
 * --resume. */
enum { TUTTI_EXIT_PREEMPTED = 75 };

/* Reports the first error on standard error ("tutti: …"), or after success the flags that were
 * given and not read ("tutti: note: …"), releases everything and returns the program's exit code:
 * 0, 1 after an error or where what was printed to standard output did not arrive (a full disk), 2
 * after wrong flags, 75 after SIGTERM. NULL is fine (0).
 */
TUTTI_API int tutti_close(tutti_job *job);

/* TUTTI_OK, or the first error; its message becomes the thread's last. */
TUTTI_API tutti_status tutti_job_check(const tutti_job *job);
/* Should the program go on? False after an error, after --help, and when Ctrl-C was pressed. */
TUTTI_API bool tutti_job_ok(const tutti_job *job);
/* Makes a program's own failure the job's: `tutti_job_fail(job, tutti_fail(TUTTI_INVALID, …))`. The
 * first one stays. Returns the status given. */
TUTTI_API tutti_status tutti_job_fail(tutti_job *job, tutti_status status);

/* Flags by name without dashes ("epochs"), and those of --set; `fallback` when not given. A number
 * that cannot be read is the job's error, as is for tutti_flag_on a text that is neither 1, true,
 * yes or on, nor 0, false, no, off or nothing. */
TUTTI_API const char *tutti_flag_text(tutti_job *job, const char *name, const char *fallback);
TUTTI_API int64_t tutti_flag_int(tutti_job *job, const char *name, int64_t fallback);
TUTTI_API double tutti_flag_number(tutti_job *job, const char *name, double fallback);
TUTTI_API bool tutti_flag_on(tutti_job *job, const char *name);

/* The program reads flags of its own: none of those that tutti_open left in argv is a mistake. To
 * be called behind tutti_open, before anything is made. */
TUTTI_API void tutti_own_flags(tutti_job *job);
/* With --quiet and --json a program prints nothing of its own. */
TUTTI_API bool tutti_job_quiet(tutti_job *job);
/* What the program reaches: a value below `at_least`, or NaN, is the job's error, and so the exit
 * code is 1. A run that --epochs or --steps-per-epoch change is held only to a number that is none
 * being a mistake. --set expect=V asks for V instead, in any run. */
TUTTI_API void tutti_expect(tutti_job *job, const char *name, double value, double at_least);

/* Hands an object to the job: destroy(object) is called at its end, the newest first. False, and
 * destroyed at once, when there is no memory. */
TUTTI_API bool tutti_job_own(tutti_job *job, void *object, void (*destroy)(void *object));

/* Every later random number of the job follows from this: --seed, or 1. */
TUTTI_API uint64_t tutti_job_seed(const tutti_job *job);

/* Ctrl-C: the first asks the job to end after the present step and to save; the second, or a
 * SIGTERM after it, ends the process. In force while a fit or a loop with tutti_progress runs. */
TUTTI_API bool tutti_interrupted(void);

#ifdef __cplusplus
}
#endif
#endif
