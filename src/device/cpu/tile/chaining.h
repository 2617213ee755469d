/* chaining.h: joining consecutive cheap steps into chains. */
#ifndef TUTTI_DEVICE_CPU_TILE_CHAINING_H
#define TUTTI_DEVICE_CPU_TILE_CHAINING_H

#include "device/cpu/tile/program.h"

enum { TUTTI_CHAIN_MOST = 64 }; /* steps in one chain */

/* Marks the chains among a program's steps: see tutti_tile_step.chain. */
void tutti__tile_make_chains(tutti_tile_program *program);

/* Runs the chain that begins at `step` on `count` elements; pointer(context, place) gives memory.
 */
void tutti__tile_run_chain(const tutti_tile_program *program, const tutti_tile_step *step,
                           int64_t count, void *(*pointer)(void *context, tutti_tile_place place),
                           void *context);

#endif
