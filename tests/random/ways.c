/* ways.c: every way in which a recipe is run. */
#include "ways.h"

#include <stdio.h>

static void wish(wishes *w, tutti_sym sym, const char *what, int number, int round)
{
    snprintf(w->names[w->count], sizeof w->names[0], "%s %d of round %d", what, number, round);
    w->syms[w->count++] = sym;
}

/* A step that was left out may hand a start on; a variable is no value of a round. */
static bool is_start(const builder *b, tutti_sym sym)
{
    for (int i = 0; i < b->starts; i++)
        if (b->values[i].node == sym.node)
            return true;
    return false;
}

void wish_all(wishes *w, const builder *b, int round)
{
    for (int i = 0; round == 0 && i < b->output_count; i++)
        wish(w, b->outputs[i], "output", i, round);
    wish(w, b->loss, "loss", 0, round);
    for (int i = 0; round >= 2 && i < b->weight_count; i++)
        if (tutti_sym_ok(b->gradients[i]))
            wish(w, b->gradients[i], "gradient", i, round);
    for (int i = b->starts; round == 3 && i < b->starts + b->steps; i++)
        if (!is_start(b, b->values[i]) && (b->recipe.seed + (uint64_t)i * 7) % 5 == 0)
            wish(w, b->values[i], "value", i, round);
}

const run_way ways[] = {
    {"session", run_session, TUTTI_F32, "cpu:0"},
    {"constants", run_session, TUTTI_F32, "cpu:0", .constants = true},
    {"tape", run_tape, TUTTI_F32, "cpu:0", .stateless = true},
    {"far_tape", run_tape, TUTTI_F32, "far:0", .stateless = true},
    {"far", run_session, TUTTI_F32, "far:0"},
    {"whole", run_session, TUTTI_F32, "whole:0"},
    {"deterministic", run_session, TUTTI_F32, "cpu:0", .deterministic = true},
    {"serialized", run_session, TUTTI_F32, "cpu:0", .serialized = true},
    {"scattered", run_session, TUTTI_F32, "cpu:0", .scattered = true},
    {"limit16k", run_session, TUTTI_F32, "cpu:0", .memory_limit = 16 << 10},
    {"limit64k", run_session, TUTTI_F32, "cpu:0", .memory_limit = 64 << 10},
    {"f64", run_session, TUTTI_F64, "cpu:0"},
    {"bf16", run_session, TUTTI_BF16, "cpu:0"},
    {"f16", run_session, TUTTI_F16, "cpu:0"},
    {"mirrored2", run_session, TUTTI_F32, .strategy = "mirrored", .devices = "cpu:0,cpu:1",
     .batched_only = true},
    {"mirrored3", run_session, TUTTI_F32, .strategy = "mirrored", .devices = "cpu:0,cpu:1,far:0",
     .batched_only = true},
    {"shards1", run_session, TUTTI_F32, .strategy = "one_device", .devices = "cpu:0",
     .deterministic = true, .batched_only = true},
    {"same_bits", run_session, TUTTI_F32, .strategy = "mirrored", .devices = "cpu:0,cpu:1",
     .deterministic = true, .batched_only = true, .bits_of = "shards1"},
    {"same_bits3", run_session, TUTTI_F32, .strategy = "mirrored", .devices = "cpu:0,cpu:1,cpu:2",
     .deterministic = true, .batched_only = true, .bits_of = "shards1"},
    {"mesh22", run_session, TUTTI_F32, .strategy = "mirrored", .devices = "cpu:0,cpu:1,cpu:2,far:0",
     .mesh = "host=2,data=2", .batched_only = true},
    {"mesh21", run_session, TUTTI_F32, .strategy = "mirrored", .devices = "cpu:0,cpu:1",
     .mesh = "model=2", .layout = "hidden:model"},
    {"mesh222", run_session, TUTTI_F32, .strategy = "mirrored",
     .devices = "cpu:0,cpu:1,cpu:2,far:0,far:1,far:2,far:3,far:4", .mesh = "data=2,model=2,more=2",
     .layout = "batch:data; hidden:model; heads:more"},
    {"mesh32", run_session, TUTTI_F64, .strategy = "mirrored",
     .devices = "cpu:0,cpu:1,cpu:2,far:0,far:1,far:2", .mesh = "model=3,data=2",
     .layout = "batch:data; hidden:model", .batched_only = true},
    {"mesh4", run_session, TUTTI_F32, .strategy = "mirrored", .devices = "cpu:0,cpu:1,far:0,far:1",
     .mesh = "model=2,more=2", .layout = "hidden:model*more"},
    {"central", run_session, TUTTI_F32, .strategy = "central_storage", .devices = "cpu:0,cpu:1",
     .batched_only = true},
    {"gpu", run_session, TUTTI_F32, "gpu:0", .named_only = true},
    {"gpu_tape", run_tape, TUTTI_F32, "gpu:0", .stateless = true, .named_only = true},
    {"gpu_deterministic", run_session, TUTTI_F32, "gpu:0", .deterministic = true,
     .named_only = true},
    {"gpu_f64", run_session, TUTTI_F64, "gpu:0", .named_only = true},
    {"gpu_bf16", run_session, TUTTI_BF16, "gpu:0", .named_only = true},
    {"gpu_f16", run_session, TUTTI_F16, "gpu:0", .named_only = true},
    {"gpu_mirrored2", run_session, TUTTI_F32, .strategy = "mirrored", .devices = "gpu:0/0,gpu:0/1",
     .batched_only = true, .named_only = true},
    {"gpu_shards1", run_session, TUTTI_F32, .strategy = "one_device", .devices = "gpu:0",
     .deterministic = true, .batched_only = true, .named_only = true},
    {"gpu_same_bits", run_session, TUTTI_F32, .strategy = "mirrored", .devices = "gpu:0/0,gpu:0/1",
     .deterministic = true, .batched_only = true, .bits_of = "gpu_shards1", .named_only = true},
    {"gpu_central", run_session, TUTTI_F32, .strategy = "central_storage",
     .devices = "gpu:0/0,gpu:0/1", .batched_only = true, .named_only = true},
    {0},
};
