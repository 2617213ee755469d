/* equation.h: the equation of an einsum, taken apart: "bij,bjk->bik". */
#ifndef TUTTI_OPS_LINEAR_EQUATION_H
#define TUTTI_OPS_LINEAR_EQUATION_H

#include "ops/shape/rule.h"

/* Labels are numbers: 0-25 for A-Z, 26-51 for a-z (the order of an output that is not given), and
 * 52-59 for the axes of "...", the last of which is 52. Those axes broadcast; the digits 0-7 name
 * them one by one in equations of gradients. */
enum {
    TUTTI_LABELS = 60,
    TUTTI_LABEL_DOTS = 52,
    TUTTI_EINSUM_OPERANDS = TUTTI_SPLIT_SLOTS,
    TUTTI_EQUATION_TEXT = (TUTTI_EINSUM_OPERANDS + 2) * (TUTTI_MAX_RANK + 2)
};

typedef struct tutti_term {
    int rank;
    uint8_t labels[TUTTI_MAX_RANK];
} tutti_term;

typedef struct tutti_equation {
    int operand_count;
    tutti_term operands[TUTTI_EINSUM_OPERANDS];
    tutti_term output;
} tutti_equation;

/* `ranks` are those of the operands. `op` and `name` go into messages. */
tutti_status tutti__equation_parse(const tutti_op *op, const char *name, const char *text,
                                   int operand_count, const int *ranks, tutti_equation *ret);

/* The axis of a term that has the label, or -1; how many have it. */
int tutti__term_axis(const tutti_term *term, int label);
int tutti__term_count(const tutti_term *term, int label);

/* Sets of labels are bits: label i is 1 << i. The set of a term; those labels of a term that are in
 * a set, in the term's order; two terms, one after the other, of TUTTI_MAX_RANK labels at most. */
uint64_t tutti__term_set(const tutti_term *term);
tutti_term tutti__term_within(const tutti_term *term, uint64_t set);
tutti_term tutti__term_join(const tutti_term *first, const tutti_term *second);
bool tutti__term_equal(const tutti_term *a, const tutti_term *b);

/* Appends the labels to a text of TUTTI_EQUATION_TEXT bytes. */
void tutti__term_text(const tutti_term *term, char *text);

/* 'j', or "..." axis as a digit. */
char tutti__label_name(int label);

#endif
