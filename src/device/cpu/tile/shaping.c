/* shaping.c: the tiles that a program runs on: whether its shapes fit together, and how large they
 * may be. */
#include <string.h>

#include "device/cpu/tile/compiler.h"

/* Outputs have the shape of the tiles; what reductions give is looked at later. */
tutti_status tutti__tile_check_outputs(const tutti_kernel_query *query, tutti_tile_program *program)
{
    const tutti_tile_body *body = program->body;
    if (body->output_count > TUTTI_SPACE_INPUTS || body->output_count < 1)
        return tutti__tile_refuse("so many outputs");
    for (int i = 0; i < body->output_count; i++) {
        const tutti_type *other = &query->node.outputs[i], *full = &body->full;
        const tutti_body_value *value = &body->values[body->result_values[i]];
        bool same = other->rank == full->rank &&
                    memcmp(other->dims, full->dims, (size_t)full->rank * sizeof full->dims[0]) == 0;
        if ((!same && body->row_count == 0) || other->dtype != value->type.dtype)
            return tutti__tile_refuse("outputs of different shapes");
        program->output_elements[i] = tutti_dtype_size(other->dtype);
    }
    return TUTTI_OK;
}

/* What values work along keeps axes apart, as one more source would. */
tutti_status tutti__tile_make_space(tutti_tile_program *program, int64_t tile_elements)
{
    const tutti_tile_body *body = program->body;
    tutti_type sources[TUTTI_SPACE_INPUTS];
    int count = body->source_count;
    if (count + body->row_count > TUTTI_SPACE_INPUTS)
        return tutti__tile_refuse("so many inputs");
    for (int i = 0; i < count; i++)
        sources[i] = body->values[i].type;
    for (int v = count; v < body->value_count; v++)
        if (body->values[v].kind != TUTTI_BODY_ELEMENTS)
            sources[count++] = body->values[v].kept;
    if (!tutti__space_make(&body->full, count, sources, tile_elements, &program->space))
        return tutti__tile_refuse("these shapes");
    return TUTTI_OK;
}

/* Whether no value but repeated scalars goes through a slot: then tiles need not fit in one. */
bool tutti__tile_needs_no_slots(const tutti_tile_program *program)
{
    for (int i = 0; i < program->load_count; i++)
        if (program->space.inputs[program->loads[i].source].reach != TUTTI_REACH_SCALAR)
            return false;
    for (int s = 0; s < program->step_count; s++) {
        const tutti_tile_step *step = &program->steps[s];
        if (step->chain == 1 || (step->keep && step->y.kind == TUTTI_PLACE_SLOT))
            return false;
        for (int i = 0; i < step->inputs; i++)
            if (step->x[i].kind == TUTTI_PLACE_SLOT)
                return false;
    }
    return true;
}
