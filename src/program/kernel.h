/* kernel.h: what a fast kernel is. One file each, ending in one descriptor; picked by score.
 * tables: tutti_kernel */
#ifndef TUTTI_PROGRAM_KERNEL_H
#define TUTTI_PROGRAM_KERNEL_H

#include "tutti/op.h"

/* What a kernel is asked to run: a node with known shapes. */
typedef struct tutti_kernel_query {
    tutti_infer node;   /* types of inputs and outputs, attributes */
    int threads;        /* that may run pieces at once: the device's, and guests */
    bool deterministic; /* only row-invariant kernels may bid */
    tutti_pool *pool;   /* where `prepare` may work on several threads; may be NULL */
} tutti_kernel_query;

enum {
    TUTTI_KERNEL_STRIDED = 1 << 0, /* takes inputs with any strides, also 0 */
    TUTTI_KERNEL_ROW_INVARIANT =
        1 << 1, /* a row's result does not depend on how many rows stand beside it */
    TUTTI_KERNEL_TUNED = 1 << 2, /* its score is a guess: measured against the others so marked */
    TUTTI_KERNEL_INPLACE_EACH = 1 << 3, /* output i may be written over input i, for every i */
    TUTTI_KERNEL_WIDENS = 1 << 4, /* runs 16 bits by a kernel of 32: the pass widen does better */
    TUTTI_KERNEL_HOST =
        1 << 5, /* runs on the host whatever the device, with views of host memory */
    TUTTI_KERNEL_TENSORS =
        1 << 6,                  /* it passes values on: asks for inputs by `take` and sets outputs
                                   by `give` (ops/call.h) where a device has its own memory; the
                                   views then have no data, and nobody waits for values */
    TUTTI_KERNEL_TURNED = 1 << 7 /* of attention: also runs fused with the transposes round it, as
                                    pattern "attention_rows" */
};

/* As tutti_kernel.op: any operator with TUTTI_OP_ELEMENTWISE. */
#define TUTTI_KERNEL_ELEMENTWISE "*elementwise"
/* Any operator. */
#define TUTTI_KERNEL_ANY "*any"

typedef struct tutti_kernel {
    const char *name; /* "matmul.gemm"; goes into the program's hash with version and isa */
    int version;
    const char *op;     /* the operator it runs, TUTTI_KERNEL_ELEMENTWISE or TUTTI_KERNEL_ANY */
    const char *target; /* "cpu": also used by targets that share its kernels (far) */
    const char *isa;    /* "base", "avx2", … as TUTTI_ISA: the CPU must have it */
    uint32_t flags;
    uint32_t inplace; /* bit i: output 0 may be written over input i when their types agree */

    /* (optional) of the operators that `op` stands for, whether it runs this one on any types. */
    bool (*covers)(const tutti_op *op);
    /* 0 refuses; the reference counts 1; a good general kernel 100; a special one more. */
    int (*score)(const tutti_kernel_query *query);
    size_t (*workspace)(const tutti_kernel_query *query); /* (optional) bytes; takes no memory */
    tutti_status (*prepare)(const tutti_kernel_query *query, void **ret_plan); /* (optional) */
    size_t (*room)(const void *plan); /* (optional) the workspace, where only the plan knows it */
    void (*discard)(void *plan);      /* (optional) */
    /* (optional) false: the plan holds what `run` wants of that input, a constant, whose data need
     * not be there. */
    bool (*reads)(const void *plan, int input);
    tutti_kernel_fn *run;
} tutti_kernel;

/* The best kernel for the node on a target, or NULL when only the reference is left. */
const tutti_kernel *tutti__kernel_pick(const char *target, const tutti_kernel_query *query);

/* Bytes of workspace that a kernel wants for runs with this plan of it. */
size_t tutti__kernel_workspace(const tutti_kernel *kernel, const tutti_kernel_query *query,
                               const void *plan);

/* Those marked TUTTI_KERNEL_TUNED whose bid is at least a quarter of the best, each of its best
 * instruction set; none when the best bid is not so marked. Best first; returns their number. */
int tutti__kernel_rivals(const char *target, const tutti_kernel_query *query, int capacity,
                         const tutti_kernel **ret);

/* All kernels for an operator on a target, best first; returns their number. */
int tutti__kernel_list(const char *op, const char *target, int capacity, const tutti_kernel **ret);

/* For `prepare`, of a plan that holds nothing else: a copy of it, which free discards. */
tutti_status tutti__kernel_keep(const tutti_kernel_query *query, const void *plan, size_t size,
                                void **ret_plan);

/* Whether this CPU runs code of an instruction set named as in tutti_kernel.isa. TUTTI_ISA=avx2 in
 * the environment hides the better ones. */
bool tutti__isa_present(const char *isa);
/* Refuses a TUTTI_ISA that is the name of no set. */
tutti_status tutti__isa_check_setting(void);
/* Of two sets of one family. */
bool tutti__isa_better(const char *isa, const char *other);

/* Views of a call's attributes, short. */
static inline int64_t tutti__call_int(const tutti_kernel_call *c, const char *name)
{
    return tutti_attr_int(c->attrs, c->attr_count, name);
}
static inline double tutti__call_float(const tutti_kernel_call *c, const char *name)
{
    return tutti_attr_float(c->attrs, c->attr_count, name);
}

#endif
