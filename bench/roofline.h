/* roofline.h: where a step's time goes, kernel by kernel, from the runner's trace, or, of a GPU,
 * from its own clock; of several devices that of the first, which the calling thread drives. */
#ifndef TUTTI_BENCH_ROOFLINE_H
#define TUTTI_BENCH_ROOFLINE_H

#include "bench/peak.h"
#include "exec/engine.h"

typedef struct tutti_roofline tutti_roofline;

/* Of the program that the engine compiled last: it is what a steady step runs. */
tutti_roofline *tutti__roofline_open(tutti_engine *engine);
/* The same of a plan, whose reference is taken over. */
tutti_roofline *tutti__roofline_of(struct tutti_plan *plan);
void tutti__roofline_close(tutti_roofline *roofline); /* NULL is fine */

/* Whether the device works on when a step has returned: then only `wait` says that it is over. */
bool tutti__roofline_enqueues(const tutti_roofline *roofline);
void tutti__roofline_wait(const tutti_roofline *roofline);
/* From now on such a device's instructions are timed, one by one, and its steps are slower. */
void tutti__roofline_time(tutti_roofline *roofline);
/* What such a device can do. */
void tutti__roofline_peak(const tutti_roofline *roofline, tutti_peak *ret);

/* FLOPs of one run of the program, by the operators' cost rules. */
double tutti__roofline_flops(const tutti_roofline *roofline);

/* Seconds of all kernels, but of those of the operator `except`; each instruction's least over the
 * steps. */
double tutti__roofline_seconds(const tutti_roofline *roofline, const char *except);

/* Takes what the calling thread's ring has got since the last call: the events of one step, which
 * took so many seconds (0: not known; negative: from its first kernel to its last, where other
 * programs run between two steps). */
void tutti__roofline_step(tutti_roofline *roofline, double seconds);

/* Seconds of a step that nobody disturbs: each instruction's least over the steps, and the least
 * that was ever between them. */
double tutti__roofline_total(const tutti_roofline *roofline);

/* Seconds of one instruction of the program, the least over the steps; infinite: it was not seen.
 */
double tutti__roofline_instruction(const tutti_roofline *roofline, size_t index);

/* One row for each kernel, operator and shape, the longest first: its time (each instruction's
 * least over the steps), its share of the step (the sum of these, and of what no kernel ran in),
 * and its share of its own roofline: max(FLOPs / peak FLOP/s, bytes / peak bytes/s) / time. Data
 * that a cache holds moves faster than the roofline's bytes/s, so that a share may pass 100 %. */
void tutti__roofline_report(const tutti_roofline *roofline, const char *name,
                            const tutti_peak *peak, bool json);

#endif
