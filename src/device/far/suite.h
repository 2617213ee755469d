/* suite.h: tests that every test device must pass: the same graphs on it and on cpu:0. A tolerance
 * of 0 asks for the same bits. */
#ifndef TUTTI_DEVICE_FAR_SUITE_H
#define TUTTI_DEVICE_FAR_SUITE_H

#include "tutti/gradients.h"
#include "tutti/ops.h"
#include "tutti/optimizer.h"
#include "tutti/session.h"

/* A small network that learns: two dense layers, cross entropy, Adam. The first layer stands on
 * device `first`, the rest on `second`; "" leaves it to the session. */
typedef struct tutti_suite_network {
    tutti_graph *graph;
    tutti_sym x, labels, loss, logits, step, initialize;
    tutti_sym variables[4]; /* w1 b1 w2 b2 */
    tutti_tensor *inputs, *targets;
} tutti_suite_network;
void tutti__suite_network_make(const char *first, const char *second, tutti_suite_network *ret);
void tutti__suite_network_free(tutti_suite_network *network);
/* What `steps` steps of training leave: the loss of each step, then the variables; from malloc. */
typedef struct tutti_suite_trained {
    int count;
    tutti_tensor **values;
} tutti_suite_trained;
void tutti__suite_train(const tutti_suite_network *network, const char *device, int steps,
                        tutti_suite_trained *ret);
void tutti__suite_trained_free(tutti_suite_trained *trained);
void tutti__suite_compare(const tutti_suite_trained *a, const tutti_suite_trained *b,
                          double tolerance);
/* Numbers in [-1, 1), the same for the same seed. */
tutti_tensor *tutti__suite_numbers(uint64_t seed, int rank, const int64_t *dims);
/* Ends the test unless the tensors agree. */
void tutti__suite_same(const tutti_tensor *a, const tutti_tensor *b, double tolerance);

void tutti__suite_trains(const char *device, double tolerance);
/* The network cut between two devices, its halves joined by send and recv. */
void tutti__suite_trains_cut(const char *first, const char *second, double tolerance);
/* Old values, new values, several updates of one variable, fetches of each, set and get. */
void tutti__suite_variables(const char *device);
/* Any subset of the fetches; results that are inputs, constants, views, the same value twice. */
void tutti__suite_results(const char *device);
/* A kernel that fails ends the run, names its node and changes no variable; the next run works. */
void tutti__suite_errors(const char *device);
/* What an update gives on one device is written on the other: after the commit when nothing can
 * fail any more, before it when something can; a failure then changes neither. */
void tutti__suite_delayed(const char *first, const char *second);
/* cond and while, their gradients, and one inside the other. */
void tutti__suite_control(const char *device, double tolerance);
/* Runs from several threads: every update of a counter counts, readers see whole steps. */
void tutti__suite_threads(const char *device);
/* Shapes that depend on data, twice with different sizes. */
void tutti__suite_dynamic(const char *device);
/* Strings and queues: what the device refuses finds its place on the host. */
void tutti__suite_strings_and_queues(const char *device);

#endif
