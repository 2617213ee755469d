/* roofline.c: events of the trace, matched to the program's instructions. */
#include "bench/roofline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/frame.h"
#include "device/cuda/run.h"
#include "exec/plan/plan.h"
#include "program/trace.h"

#define WHAT_TEXT 400

/* One instruction. */
typedef struct part {
    const tutti_instruction *instruction;
    uint32_t name;  /* of its events */
    double seconds; /* the least seen */
    tutti_cost cost;
} part;

/* Several of the same kernel, operator and shape. */
typedef struct row {
    const char *kernel;
    char what[WHAT_TEXT]; /* operator and shapes */
    int count;
    double seconds, floor; /* floor: what the roofline asks for */
    tutti_cost cost;
} row;

struct tutti_roofline {
    tutti_plan *plan;
    tutti_gpu_executable *gpu; /* of the first device, or NULL: it is no GPU */
    double flops;              /* of all devices */
    size_t count, matched; /* instructions of the first one; events of a step that were theirs */
    part *parts;
    uint64_t seen; /* events of the ring */
    bool started;
    double outside; /* seconds of a step in which no kernel ran, the least seen */
};

tutti_roofline *tutti__roofline_open(tutti_engine *engine)
{
    return tutti__roofline_of(tutti__engine_last(engine));
}

static void add_parts(tutti_roofline *roofline, const tutti_program *program)
{
    roofline->parts = calloc(program->instruction_count + 1, sizeof *roofline->parts);
    if (!roofline->parts)
        tutti__bench_must(tutti_fail(TUTTI_NO_MEMORY, "no memory for the kernels' times"));
    roofline->count = program->instruction_count;
    for (size_t i = 0; i < roofline->count; i++)
        roofline->parts[i] = (part){.instruction = &program->instructions[i],
                                    .name = program->instructions[i].traced,
                                    .seconds = INFINITY,
                                    .cost = tutti__node_cost(program->instructions[i].node)};
}

static const tutti_program *program_of(const tutti_plan_piece *piece)
{
    const char *target = piece->device->target->name;
    if (strcmp(target, "gpu") == 0)
        return ((const tutti_gpu_executable *)piece->executable)->program;
    return strcmp(target, "cpu") == 0 ? ((const tutti_cpu_executable *)piece->executable)->program
                                      : NULL;
}

tutti_roofline *tutti__roofline_of(tutti_plan *plan)
{
    tutti_roofline *roofline = calloc(1, sizeof *roofline);
    if (!roofline)
        tutti__bench_must(tutti_fail(TUTTI_NO_MEMORY, "no memory for the kernels' times"));
    roofline->plan = plan;
    roofline->outside = INFINITY;
    for (int i = 0; plan && i < plan->piece_count; i++) {
        const tutti_program *program = program_of(&plan->pieces[i]);
        if (!program)
            continue;
        for (size_t k = 0; k < program->instruction_count; k++)
            roofline->flops += tutti__node_cost(program->instructions[k].node).flops;
        if (i == 0)
            add_parts(roofline, program);
        if (i == 0 && strcmp(plan->pieces[i].device->target->name, "gpu") == 0)
            roofline->gpu = (tutti_gpu_executable *)plan->pieces[i].executable;
    }
    return roofline;
}

void tutti__roofline_close(tutti_roofline *roofline)
{
    if (!roofline)
        return;
    if (roofline->plan)
        tutti__plan_release(roofline->plan);
    free(roofline->parts);
    free(roofline);
}

bool tutti__roofline_enqueues(const tutti_roofline *roofline)
{
    return roofline->gpu != NULL;
}

void tutti__roofline_wait(const tutti_roofline *roofline)
{
    for (int i = 0; roofline->gpu && i < roofline->plan->piece_count; i++) {
        tutti_device *device = roofline->plan->pieces[i].device;
        if (device->target->finish)
            tutti__bench_must(device->target->finish(device));
    }
}

void tutti__roofline_time(tutti_roofline *roofline)
{
    tutti__bench_must(tutti__gpu_time(roofline->gpu));
}

void tutti__roofline_peak(const tutti_roofline *roofline, tutti_peak *ret)
{
    double peaks[3];
    const tutti_gpu_device *device = roofline->gpu->device;
    tutti__bench_must(device->table->peaks(device->gpu, peaks));
    *ret = (tutti_peak){.bytes = peaks[0], .flops = peaks[1], .bf16_flops = peaks[2]};
}

/* What the GPU's clock said, into the parts. */
static void read_gpu(const tutti_roofline *roofline)
{
    for (size_t i = 0; roofline->gpu && roofline->gpu->seconds && i < roofline->count; i++)
        roofline->parts[i].seconds = roofline->gpu->seconds[i];
}

double tutti__roofline_flops(const tutti_roofline *roofline)
{
    return roofline->flops;
}

double tutti__roofline_seconds(const tutti_roofline *roofline, const char *except)
{
    double seconds = 0;
    for (size_t i = 0; i < roofline->count; i++)
        if (strcmp(roofline->parts[i].instruction->node->op->name, except) != 0 &&
            isfinite(roofline->parts[i].seconds))
            seconds += roofline->parts[i].seconds;
    return seconds;
}

double tutti__roofline_instruction(const tutti_roofline *roofline, size_t index)
{
    return index < roofline->count ? roofline->parts[index].seconds : INFINITY;
}

/* The instruction of an event: the next of that name behind the last one's. */
static size_t find(const tutti_roofline *roofline, size_t from, uint32_t name)
{
    for (size_t i = from; i < roofline->count; i++)
        if (roofline->parts[i].name == name)
            return i;
    return roofline->count;
}

static const tutti_trace_event *event_at(const tutti_trace *trace, uint64_t index)
{
    return &trace->events[index & (TUTTI_TRACE_RING - 1)];
}

/* How many events are the program's, in its order. Another program that ran last matches less. */
static size_t matches(const tutti_roofline *roofline, const tutti_trace *trace, uint64_t begin,
                      uint64_t end)
{
    size_t next = 0, count = 0;
    for (uint64_t i = begin; i < end; i++) {
        size_t at = find(roofline, next, event_at(trace, i)->name);
        count += at < roofline->count;
        next = at < roofline->count ? at + 1 : next;
    }
    return count;
}

/* The step that matches best counts, and those that match as well. */
static bool is_ours(tutti_roofline *roofline, size_t matched)
{
    if (matched > roofline->matched) {
        roofline->matched = matched;
        roofline->outside = INFINITY;
        for (size_t i = 0; i < roofline->count; i++)
            roofline->parts[i].seconds = INFINITY;
    }
    return matched == roofline->matched;
}

void tutti__roofline_step(tutti_roofline *roofline, double seconds)
{
    tutti_trace *trace = tutti__trace_mine();
    if (!trace || roofline->gpu)
        return;
    size_t next = 0;
    double inside = 0;
    uint64_t end = trace->count, begin = roofline->seen, first = 0, last = 0;
    roofline->seen = end;
    if (end - begin > roofline->count) /* what ran before it, in a step of several programs */
        begin = end - roofline->count;
    if (!roofline->started || end - begin > TUTTI_TRACE_RING ||
        !is_ours(roofline, matches(roofline, trace, begin, end))) {
        roofline->started = true;
        return;
    }
    for (uint64_t i = begin; i < end; i++) {
        const tutti_trace_event *event = event_at(trace, i);
        size_t at = find(roofline, next, event->name);
        if (at == roofline->count)
            continue;
        double each = (double)(event->end - event->start) * tutti__tick_ns() * 1e-9;
        if (each < roofline->parts[at].seconds)
            roofline->parts[at].seconds = each;
        inside += each;
        first = next == 0 ? event->start : first;
        last = event->end;
        next = at + 1;
    }
    if (seconds < 0)
        seconds = (double)(last - first) * tutti__tick_ns() * 1e-9;
    if (seconds > inside && seconds - inside < roofline->outside)
        roofline->outside = seconds - inside;
}

/* ---- the table ---- */

static const char *kernel_name(const tutti_instruction *instruction)
{
    if (instruction->kernel)
        return instruction->kernel->name;
    return instruction->run == tutti__copy_bytes ? "copy" : "reference";
}

/* "matmul f32[64,5408] f32[5408,64] → f32[64,64]"; of many inputs the first three. */
static void describe(const tutti_node *node, char *ret, size_t size)
{
    char type[TUTTI_TYPE_TEXT];
    const tutti_attr *pattern = tutti_attr_find(node->attrs, node->attr_count, "pattern");
    size_t used = (size_t)snprintf(ret, size, "%s", node->op->name);
    if (pattern)
        used += (size_t)snprintf(ret + used, size - used, "(%s)",
                                 tutti_attr_string(node->attrs, node->attr_count, "pattern"));
    for (int i = 0; i < node->input_count && i < 3 && used < size; i++)
        used += (size_t)snprintf(ret + used, size - used, " %s",
                                 tutti_type_text(tutti__edge_type(node->inputs[i]), type));
    if (node->output_count > 0 && used < size)
        snprintf(ret + used, size - used, " -> %s", tutti_type_text(&node->types[0], type));
}

/* What its products are of. */
static tutti_dtype dtype_of(const tutti_node *node)
{
    const char *name = "products";
    if (tutti_attr_find(node->attrs, node->attr_count, name) != NULL &&
        strcmp(tutti__str(node, name), "bf16") == 0)
        return TUTTI_BF16;
    return node->input_count > 0 ? tutti__edge_type(node->inputs[0])->dtype : TUTTI_F32;
}

static size_t gather(const tutti_roofline *roofline, const tutti_peak *peak, row *rows)
{
    size_t count = 0;
    for (size_t i = 0; i < roofline->count; i++) {
        const part *p = &roofline->parts[i];
        char what[WHAT_TEXT];
        size_t r = 0;
        if (!isfinite(p->seconds))
            continue;
        describe(p->instruction->node, what, sizeof what);
        while (r < count && (strcmp(rows[r].kernel, kernel_name(p->instruction)) != 0 ||
                             strcmp(rows[r].what, what) != 0))
            r++;
        if (r == count) {
            rows[count++] = (row){.kernel = kernel_name(p->instruction)};
            memcpy(rows[r].what, what, sizeof what);
        }
        rows[r].count++;
        rows[r].seconds += p->seconds;
        rows[r].cost.flops += p->cost.flops;
        double bytes = p->cost.bytes_read + p->cost.bytes_written;
        rows[r].cost.bytes_read += bytes;
        rows[r].floor += fmax(p->cost.flops / tutti__peak_of(peak, dtype_of(p->instruction->node)),
                              bytes / peak->bytes);
    }
    return count;
}

static int by_time(const void *a, const void *b)
{
    double x = ((const row *)a)->seconds, y = ((const row *)b)->seconds;
    return (x < y) - (x > y);
}

static void print_row(const row *r, const char *name, double step, bool json)
{
    double share = r->seconds > 0 ? r->floor / r->seconds : 0;
    if (json)
        printf("{\"bench\":\"profile\",\"work\":\"%s\",\"kernel\":\"%s\",\"operator\":\"%s\","
               "\"count\":%d,\"value\":%.6g,\"unit\":\"ms\",\"share_of_step\":%.4g,"
               "\"gflops\":%.4g,\"gbytes\":%.4g,\"share_of_roofline\":%.4g}\n",
               name, r->kernel, r->what, r->count, r->seconds * 1e3, r->seconds / step,
               r->cost.flops / r->seconds * 1e-9, r->cost.bytes_read / r->seconds * 1e-9, share);
    else
        printf("%8.3f %5.1f%% %4d %8.1f %8.1f %6.0f%%  %-26s %s\n", r->seconds * 1e3,
               100 * r->seconds / step, r->count, r->cost.flops / r->seconds * 1e-9,
               r->cost.bytes_read / r->seconds * 1e-9, 100 * share, r->kernel, r->what);
}

double tutti__roofline_total(const tutti_roofline *roofline)
{
    double outside = isfinite(roofline->outside) ? roofline->outside : 0;
    return outside + tutti__roofline_seconds(roofline, "");
}

void tutti__roofline_report(const tutti_roofline *roofline, const char *name,
                            const tutti_peak *peak, bool json)
{
    row *rows = calloc(roofline->count + 1, sizeof *rows);
    if (!rows)
        return;
    read_gpu(roofline);
    size_t count = gather(roofline, peak, rows);
    double outside = isfinite(roofline->outside) ? roofline->outside : 0;
    double step = tutti__roofline_total(roofline);
    qsort(rows, count, sizeof *rows, by_time);
    if (!json)
        printf("%8s %6s %4s %8s %8s %7s  %-26s %s\n", "ms", "step", "of", "GFLOP/s", "GB/s", "roof",
               "kernel", "operator");
    for (size_t r = 0; r < count; r++)
        print_row(&rows[r], name, step, json);
    if (!json && roofline->gpu)
        printf("%8.3f         of %zu instructions, one after the other; a step's graphs launch %zu "
               "and %zu kernels, before the commit and in it (0: no graph)\n",
               step * 1e3, roofline->count, roofline->gpu->launches[0] + roofline->gpu->launches[1],
               roofline->gpu->launches[2]);
    else if (!json)
        printf("%8.3f %5.1f%%  between kernels, of %zu instructions\n", outside * 1e3,
               100 * outside / step, roofline->count);
    free(rows);
}
