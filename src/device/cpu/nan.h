/* nan.h: running instructions under --debug-nan. */
#ifndef TUTTI_DEVICE_CPU_NAN_H
#define TUTTI_DEVICE_CPU_NAN_H

#include "program/program.h"

/* Runs one instruction; INVALID when it makes a NaN or an infinity. */
tutti_status tutti__cpu_run_looking(const tutti_program *program, size_t index,
                                    tutti_kernel_call *call);

#endif
