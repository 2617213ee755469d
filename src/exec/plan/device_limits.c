/* device_limits.c: memory that a strategy grants to a device: a program that needs more is refused
 * before it runs. What counts is planned: the program's values, and the variables on the device; of
 * one that devices keep once between them, the device's share. */
#include <stdio.h>
#include <string.h>

#include "exec/plan/plan.h"

static const char *amount(int64_t bytes, char ret[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double number = (double)bytes;
    int unit = 0;
    for (; number >= 1024 && unit < 4; unit++)
        number /= 1024;
    snprintf(ret, 32, unit == 0 ? "%.0f %s" : "%.4g %s", number, units[unit]);
    return ret;
}

static int64_t bytes_of(const tutti_type *type)
{
    return tutti_type_count(type) * (int64_t)tutti_dtype_size(type->dtype);
}

typedef struct held {
    int64_t bytes, largest;
    int count;
    const char *name; /* of the largest */
} held;

/* Variables on a device. */
static held variables_on(tutti_state *state, const char *device)
{
    held h = {.name = ""};
    tutti_state_variable *variable;
    for (size_t i = 0; (variable = tutti__state_at(state, i)) != NULL; i++)
        for (size_t k = 0; k < variable->pieces.count; k++) {
            const tutti_piece *piece = variable->pieces.data[k];
            if (strcmp(piece->device, device) != 0)
                continue;
            int64_t bytes = bytes_of(&piece->type);
            h.bytes += bytes;
            h.count++;
            if (bytes > h.largest) {
                h.largest = bytes;
                h.name = variable->name;
            }
        }
    return h;
}

tutti_status tutti__limits_check(tutti_state *state, const tutti_strategy *strategy,
                                 const tutti_plan *plan)
{
    for (int i = 0; i < plan->piece_count; i++) {
        const tutti_plan_piece *piece = &plan->pieces[i];
        const tutti_executable *executable = piece->executable;
        int64_t limit = tutti__strategy_limit(strategy, piece->device->name);
        if (limit <= 0)
            continue;
        held h = variables_on(state, piece->device->name);
        int64_t values =
            executable->table->memory ? (int64_t)executable->table->memory(executable) : 0;
        char a[32], b[32], c[32], d[32], e[32];
        if (h.bytes + values > limit)
            return tutti_fail(
                TUTTI_TOO_LARGE,
                "device %s may take %s and needs %s: %s for values of the step, %s for %d variables "
                "(the largest is '%s', %s); take smaller batches, more devices or another place for "
                "variables (--strategy central_storage), or raise the limit: --devices %s=%lldMiB",
                piece->device->name, amount(limit, a), amount(h.bytes + values, b),
                amount(values, c), amount(h.bytes, d), h.count, h.name, amount(h.largest, e),
                piece->device->name, (long long)((h.bytes + values + (1 << 20) - 1) >> 20));
    }
    return TUTTI_OK;
}
