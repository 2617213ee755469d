/* kernels.c: small kernels that operators on state share; see state.h. */
#include <inttypes.h>
#include <math.h>

#include "ops/state/state.h"
#include "tensor/dtype.h"

int64_t tutti__view_bytes(const tutti_view *view)
{
    return tutti_view_count(view) * (int64_t)tutti_dtype_size(view->dtype);
}

void tutti__view_copy(const tutti_view *to, const tutti_view *from)
{
    int64_t bytes = tutti__view_bytes(from);
    if (bytes > 0 && to->data != from->data)
        memmove(to->data, from->data, (size_t)bytes);
}

tutti_status tutti__reference_copy(const tutti_kernel_call *call)
{
    tutti__view_copy(&call->outputs[0], &call->inputs[0]);
    return TUTTI_OK;
}

int64_t tutti__row_count(const tutti_view *view)
{
    int64_t count = 1;
    for (int i = 1; i < view->rank; i++)
        count *= view->dims[i];
    return count;
}

enum { RUN = 512 }; /* indices read at once */

tutti_status tutti__check_indices(const tutti_kernel_call *call, const tutti_view *indices,
                                  int64_t limit)
{
    int64_t at[RUN], count = tutti_view_count(indices);
    const char *data = indices->data;
    for (int64_t first = 0; first < count; first += RUN) {
        int64_t run = count - first < RUN ? count - first : RUN;
        bool outside = false;
        tutti__elements_to_ints(indices->dtype,
                                data + first * (int64_t)tutti_dtype_size(indices->dtype), run, at);
        for (int64_t i = 0; i < run; i++)
            outside |= at[i] < 0 || at[i] >= limit;
        for (int64_t i = 0; outside && i < run; i++)
            if (at[i] < 0 || at[i] >= limit)
                return RULE_FAIL(call, TUTTI_OUT_OF_RANGE,
                                 "index %" PRId64 " (element %" PRId64
                                 " of the indices) is outside [0, %" PRId64 ")",
                                 at[i], first + i, limit);
    }
    return TUTTI_OK;
}

tutti_status tutti__call_shape(const tutti_kernel_call *call, int index, int rank,
                               const int64_t *dims)
{
    const tutti_view *out = &call->outputs[index];
    bool there = out->rank == rank && (rank == 0 || out->dims);
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        there = there && out->dims[i] == dims[i];
        count = count && dims[i] == 0 ? 0 : count;
    }
    if (there && (out->data || count == 0))
        return TUTTI_OK;
    return tutti_kernel_call_allocate(call, index, rank, dims);
}

static void add_element(const tutti_view *view, int64_t index, tutti_text *text)
{
    if (view->dtype == TUTTI_STRING) {
        const tutti_string *s = (const tutti_string *)view->data + index;
        tutti__text_add(text, "\"");
        for (int64_t i = 0; i < s->size && i < 64; i++) {
            unsigned char c = (unsigned char)s->data[i];
            if (c >= 32 && c < 127 && c != '"' && c != '\\')
                tutti__text_add(text, "%c", c);
            else
                tutti__text_add(text, "\\x%02x", c);
        }
        tutti__text_add(text, s->size > 64 ? "…\"" : "\"");
    } else if (view->dtype == TUTTI_BOOL) {
        tutti__text_add(text, tutti_view_get_int(view, index) ? "true" : "false");
    } else if (tutti_dtype_is_float(view->dtype)) {
        double x = tutti_view_get(view, index); /* a NaN's sign depends on who computed it */
        tutti__text_add(text, "%.6g", isnan(x) ? (double)NAN : x);
    } else {
        tutti__text_add(text, "%" PRId64, tutti_view_get_int(view, index));
    }
}

/* How many axes begin (or end) at the element: their brackets open before (close after) it. */
static int brackets(const tutti_view *view, int64_t index)
{
    int open = 0;
    int64_t size = 1;
    for (int axis = view->rank - 1; axis >= 0; axis--) {
        size *= view->dims[axis];
        if (size == 0 || index % size != 0)
            break;
        open++;
    }
    return open;
}

void tutti__view_text(const tutti_view *view, int64_t limit, tutti_text *text)
{
    char type_text[TUTTI_TYPE_TEXT];
    tutti_type type = tutti_type_make(view->dtype, view->rank, view->dims);
    int64_t count = tutti_view_count(view), shown = count < limit ? count : limit;
    tutti__text_add(text, "%s ", tutti_type_text(&type, type_text));
    if (count == 0)
        tutti__text_add(text, "[]");
    for (int64_t i = 0; i < shown; i++) {
        if (i > 0)
            tutti__text_add(text, " ");
        for (int b = brackets(view, i); b > 0; b--)
            tutti__text_add(text, "[");
        add_element(view, i, text);
        for (int b = brackets(view, i + 1); b > 0; b--)
            tutti__text_add(text, "]");
    }
    if (shown < count)
        tutti__text_add(text, " … (%" PRId64 " more)", count - shown);
}
