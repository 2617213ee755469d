/* space.c: see space.h. */
#include "device/cuda/operators/space.h"

#include <string.h>

bool tutti__cuda_space_strides(const tutti_cuda_space *space, int source)
{
    return space->step[source] == TUTTI_CUDA_ALONG || space->step[source] == TUTTI_CUDA_ACROSS;
}

static bool broadcasts(const tutti_type *from, const tutti_type *to)
{
    int lead = to->rank - from->rank;
    for (int i = 0; lead >= 0 && i < from->rank; i++)
        if (from->dims[i] != 1 && from->dims[i] != to->dims[lead + i])
            return false;
    return lead >= 0;
}

static tutti_cuda_step step_of(const tutti_cuda_space *space, const tutti_cuda_places *places)
{
    tutti_cuda_places dense = tutti__cuda_dense((int)space->shape.rank, space->shape.dim);
    bool linear = true, always = true;
    int rank = (int)space->shape.rank;
    for (int d = 0; d < rank; d++) {
        linear &= places->stride[d] == dense.stride[d];
        always &= places->stride[d] == 0;
    }
    if (linear || always)
        return always && space->count != 1 ? TUTTI_CUDA_ALWAYS : TUTTI_CUDA_LINEAR;
    return places->stride[rank - 1] == 0 ? TUTTI_CUDA_ACROSS : TUTTI_CUDA_ALONG;
}

/* 16 bytes of the smallest type, as far as rows of strided inputs are cut evenly. */
static int vector_of(const tutti_cuda_space *space, const tutti_infer *node)
{
    size_t size = 8;
    int vector;
    for (int i = 0; i < node->input_count; i++)
        if (space->step[i] == TUTTI_CUDA_LINEAR && tutti_dtype_size(node->inputs[i].dtype) < size)
            size = tutti_dtype_size(node->inputs[i].dtype);
    for (int i = 0; i < node->output_count; i++)
        if (tutti_dtype_size(node->outputs[i].dtype) < size)
            size = tutti_dtype_size(node->outputs[i].dtype);
    vector = size >= 8 ? 2 : size == 4 ? 4 : 8;
    for (int i = 0; i < node->input_count; i++)
        while (vector > 1 && tutti__cuda_space_strides(space, i) &&
               space->shape.dim[space->shape.rank - 1] % vector != 0)
            vector /= 2;
    return vector;
}

bool tutti__cuda_space_make(const tutti_cuda_body *body, const tutti_infer *node, bool last,
                            tutti_cuda_space *ret)
{
    tutti_cuda_places *all[TUTTI_CUDA_SOURCES + 1], dense;
    tutti_cuda_space s = {.count = tutti__cuda_type_count(&body->full)};
    s.shape = tutti__cuda_shape(body->full.rank, body->full.dims);
    for (int i = 0; i < node->input_count; i++) {
        if (!broadcasts(&node->inputs[i], &body->full))
            return false;
        s.places[i] = tutti__cuda_spread(&s.shape, node->inputs[i].rank, node->inputs[i].dims);
        all[i] = &s.places[i];
    }
    dense = tutti__cuda_dense(body->full.rank, body->full.dims);
    all[node->input_count] = &dense;
    tutti__cuda_collapse(&s.shape, node->input_count + 1, all);
    for (int i = 0; i < node->input_count; i++)
        s.step[i] = step_of(&s, &s.places[i]);
    s.wide = s.count > INT32_MAX / 2;
    s.vector = vector_of(&s, node);
    for (int i = 0; last && i < node->input_count; i++)
        while (s.vector > 1 && body->columns % s.vector != 0)
            s.vector /= 2;
    *ret = s;
    return true;
}

static int strided_count(const tutti_cuda_space *space, const tutti_cuda_body *body)
{
    int count = 0;
    for (int i = 0; i < body->source_count; i++)
        count += tutti__cuda_space_strides(space, i);
    return count;
}

void tutti__cuda_space_write(const tutti_cuda_space *space, const tutti_cuda_body *body,
                             tutti_text *text)
{
    int rank = (int)space->shape.rank, strided = strided_count(space, body), k = 0;
    tutti__text_add(text, "typedef %s I;\nstruct space {\n    I dim[%d], stride[%d][%d];\n};\n",
                    space->wide ? "i64" : "u32", rank ? rank : 1, strided ? strided : 1,
                    rank ? rank : 1);
    tutti__text_add(text, "#define OFFSETS(i)");
    for (int s = 0; s < strided; s++)
        tutti__text_add(text, " I o%d = 0;", s);
    if (strided > 0)
        tutti__text_add(text, " { I rest = (I)(i), at;");
    for (int d = rank - 1; d >= 0 && strided > 0; d--) {
        if (d > 0)
            tutti__text_add(text, " at = rest %% space.dim[%d]; rest /= space.dim[%d];", d, d);
        else
            tutti__text_add(text, " at = rest;");
        for (k = 0; k < strided; k++)
            tutti__text_add(text, " o%d += at * space.stride[%d][%d];", k, k, d);
    }
    tutti__text_add(text, strided > 0 ? " }\n\n" : "\n\n");
}

void tutti__cuda_space_parameters(const tutti_infer *node, tutti_text *text)
{
    for (int i = 0; i < node->input_count; i++)
        tutti__text_add(text, ", const %s *p%d", tutti__cuda_dtype(node->inputs[i].dtype), i);
    for (int i = 0; i < node->output_count; i++)
        tutti__text_add(text, ", %s *q%d", tutti__cuda_dtype(node->outputs[i].dtype), i);
}

static void put(const tutti_cuda_space *space, void *to, int index, int64_t value)
{
    if (space->wide)
        ((int64_t *)to)[index] = value;
    else
        ((uint32_t *)to)[index] = (uint32_t)value;
}

void tutti__cuda_space_fill(const tutti_cuda_space *space, const tutti_cuda_body *body, void *ret)
{
    int rank = (int)space->shape.rank, at = 0;
    for (int d = 0; d < rank; d++)
        put(space, ret, at++, space->shape.dim[d]);
    if (rank == 0)
        put(space, ret, at++, 1);
    for (int i = 0; i < body->source_count; i++)
        for (int d = 0; tutti__cuda_space_strides(space, i) && d < rank; d++)
            put(space, ret, at++, space->places[i].stride[d]);
}
