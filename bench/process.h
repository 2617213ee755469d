/* process.h: what a benchmark wants to know of its own process. */
#ifndef TUTTI_BENCH_PROCESS_H
#define TUTTI_BENCH_PROCESS_H

/* Seconds since this process began, by the kernel's account; it counts in ticks of 10 ms. */
double tutti__seconds_since_start(void);

/* The most memory that was resident, in MiB. */
double tutti__resident_mib(void);

#endif
