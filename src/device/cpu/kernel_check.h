/* kernel_check.h: for tests: fast kernels against the operator's reference.
 *
 * Every kernel of the CPU that bids for the node runs once for each pool of 1, 2 and 3 threads, in
 * workspace with guards round it; results must be near the reference's, of integers and bools the
 * same bytes, and have the same bits under every pool. Kernels that may overwrite an input run in
 * place too, and those that prepare once more with inputs that are constants. */
#ifndef TUTTI_DEVICE_CPU_KERNEL_CHECK_H
#define TUTTI_DEVICE_CPU_KERNEL_CHECK_H

#include "ops/sample.h"

/* Checks one sample (see ops/sample.h). Returns how many kernels bid. A negative tolerance is that
 * of the element type. Fails the test with the kernel's name and the sample. */
int tutti__kernel_check(const char *op, const char *text, double tolerance);

/* The same for a sample at hand. */
int tutti__kernel_check_sample(const tutti_sample *sample, double tolerance);

/* The same for a node of `op`, fused or fused_checked, with this pattern and body, which gets the
 * values; all of them stay the caller's. */
int tutti__kernel_check_fused(const char *op, const char *pattern, tutti_graph *body, int count,
                              tutti_tensor *const *values, double tolerance);

/* All samples of the operator and, where it takes them, their f64, f16 and bf16 forms; fails unless
 * some kernel bid for one of them. */
void tutti__kernel_check_op(const char *op);

/* Instruction sets of all machines, NULL after the last; tutti__kernel_check_under takes one for
 * the kernels from now on, where this machine and the build have it, NULL the best. */
extern const char *const tutti__kernel_check_isas[];
bool tutti__kernel_check_under(const char *isa);

/* The message with which the best kernel refuses a sample; its status must be the one given. */
const char *tutti__kernel_error(const char *op, const char *text, tutti_status status);

#endif
