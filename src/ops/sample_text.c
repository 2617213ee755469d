/* sample_text.c: reads types, tensors and attributes in the text form of samples. */
#include "ops/sample_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/random.h"

enum { MAX_ELEMENTS = 1 << 22 };
static const double away_from_zero = 0.05;

static tutti_status bad(const char *what, const char *at)
{
    return tutti_fail(TUTTI_INVALID, "sample: %s at \"%.40s\"", what, at);
}

static tutti_status read_dims(const char **text, tutti_type *type)
{
    const char *at = *text;
    if (*at++ != '[')
        return bad("needs [dimensions]", *text);
    while (*at != ']') {
        char *end;
        long long dim = strtoll(at, &end, 10);
        if (end == at || dim < 0 || type->rank == TUTTI_MAX_RANK)
            return bad("needs a dimension or ]", at);
        type->dims[type->rank++] = dim;
        at = *end == ',' ? end + 1 : end;
    }
    *text = at + 1;
    return TUTTI_OK;
}

tutti_status tutti__sample_type(const char **text, tutti_type *ret_type)
{
    const char *at = *text;
    tutti_type type = {0};
    char word[16] = "";
    if (*at == '&') {
        type.handle = true;
        at++;
    }
    size_t size = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789");
    if (size >= sizeof word)
        return bad("needs an element type", at);
    memcpy(word, at, size);
    TUTTI_TRY(tutti_dtype_parse(word, &type.dtype));
    at += size;
    TUTTI_TRY(read_dims(&at, &type));
    *text = at;
    *ret_type = type;
    return TUTTI_OK;
}

/* One element of {=…}; *text moves behind it. */
static tutti_status read_element(const char **text, tutti_tensor *tensor, int64_t index)
{
    const char *at = *text;
    char *end = NULL;
    tutti_dtype dtype = tutti_tensor_dtype(tensor);
    if (dtype == TUTTI_STRING) {
        size_t size = strcspn(at, ",}");
        TUTTI_TRY(tutti_tensor_set_string(tensor, index, at, (int64_t)size));
        *text = at + size;
        return TUTTI_OK;
    }
    if (strncmp(at, "true", 4) == 0 || strncmp(at, "false", 5) == 0) {
        tutti_tensor_set_int(tensor, index, *at == 't');
        *text = at + (*at == 't' ? 4 : 5);
        return TUTTI_OK;
    }
    if (tutti_dtype_is_float(dtype))
        tutti_tensor_set(tensor, index, tutti__strtod(at, &end));
    else
        tutti_tensor_set_int(tensor, index, strtoll(at, &end, 10));
    if (end == at)
        return bad("needs a number", at);
    *text = end;
    return TUTTI_OK;
}

/* "=1,2,3}": as many as there are elements, or one for all. */
static tutti_status read_elements(const char **text, tutti_tensor *tensor)
{
    int64_t count = tutti_tensor_count(tensor), given = 0;
    const char *at = *text, *first = at;
    while (*at != '}') {
        first = given == 0 ? at : first;
        if (given == count)
            return bad("more values than elements", at);
        TUTTI_TRY(read_element(&at, tensor, given++));
        while (*at == ',' || *at == ' ')
            at++;
        if (*at == '\0')
            return bad("needs }", *text);
    }
    for (int64_t i = 1; given == 1 && i < count; i++) {
        const char *again = first;
        TUTTI_TRY(read_element(&again, tensor, i));
    }
    if (given != count && given != 1)
        return bad("fewer values than elements", *text);
    *text = at + 1;
    return TUTTI_OK;
}

static double draw_float(tutti_random_key key, uint64_t index, double low, double high)
{
    double x = low + (high - low) * (double)tutti__random_f32(key, index);
    if (low <= -2 * away_from_zero && high >= 2 * away_from_zero && x > -away_from_zero &&
        x < away_from_zero)
        x += x < 0 ? -away_from_zero : away_from_zero;
    return x;
}

static tutti_status sample_text_draw(tutti_tensor *tensor, uint64_t seed, double low, double high)
{
    tutti_random_key key = {.seed = seed};
    tutti_dtype dtype = tutti_tensor_dtype(tensor);
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++) {
        uint64_t at = (uint64_t)i;
        if (tutti_dtype_is_float(dtype)) {
            tutti_tensor_set(tensor, i, draw_float(key, at, low, high));
        } else if (dtype == TUTTI_STRING) {
            char word[4] = {(char)('a' + tutti__random_below(key, at, 26)), 'x', 'y', 'z'};
            TUTTI_TRY(tutti_tensor_set_string(tensor, i, word, 1 + i % 4));
        } else {
            uint64_t span = high > low ? (uint64_t)(high - low) : 1;
            uint64_t value = (uint64_t)(int64_t)low + tutti__random_below(key, at, span);
            tutti_tensor_set_int(tensor, i, (int64_t)value);
        }
    }
    return TUTTI_OK;
}

/* What stands in braces behind the type, if anything does. */
static tutti_status read_values(const char **text, uint64_t seed, tutti_tensor *tensor)
{
    const char *at = *text;
    tutti_dtype dtype = tutti_tensor_dtype(tensor);
    double low = tutti_dtype_is_float(dtype) ? -1 : 0;
    double high = tutti_dtype_is_float(dtype) ? 1 : dtype == TUTTI_BOOL ? 2 : 3;
    if (*at != '{')
        return sample_text_draw(tensor, seed, low, high);
    if (at[1] == '=') {
        at += 2;
        TUTTI_TRY(read_elements(&at, tensor));
    } else {
        char *end;
        low = tutti__strtod(at + 1, &end);
        if (end == at + 1 || *end != ':')
            return bad("needs {low:high} or {=values}", at);
        const char *upper = end + 1;
        high = tutti__strtod(upper, &end);
        if (end == upper || *end != '}' || !(low <= high))
            return bad("needs {low:high} with low <= high", at);
        TUTTI_TRY(sample_text_draw(tensor, seed, low, high));
        at = end + 1;
    }
    *text = at;
    return TUTTI_OK;
}

tutti_status tutti__sample_tensor(const char **text, uint64_t seed, tutti_type *ret_type,
                                  tutti_tensor **ret_tensor)
{
    const char *at = *text;
    tutti_type type;
    tutti_tensor *tensor;
    TUTTI_TRY(tutti__sample_type(&at, &type));
    int64_t count = tutti_type_count(&type);
    if (count < 0 || count > MAX_ELEMENTS)
        return bad("too many elements", *text);
    TUTTI_TRY(tutti_tensor_create(type.dtype, type.rank, type.dims, &tensor));
    tutti_status status = read_values(&at, seed, tensor);
    if (status != TUTTI_OK) {
        tutti_tensor_release(tensor);
        return status;
    }
    *text = at;
    *ret_type = type;
    *ret_tensor = tensor;
    return TUTTI_OK;
}

/* "[f32[2],i64[]]" or without the outer brackets. */
static tutti_status read_types(const char *text, tutti_arena *arena, tutti_attr *attr)
{
    tutti_type types[16];
    int count = 0;
    const char *at = text + (*text == '[');
    while (*at != '\0' && *at != ']') {
        if (count == (int)TUTTI_COUNT(types))
            return bad("too many types", text);
        TUTTI_TRY(tutti__sample_type(&at, &types[count++]));
        at += *at == ',';
    }
    attr->count = count;
    attr->value.types = (const tutti_type *)(const void *)tutti__arena_bytes(
        arena, types, (size_t)count * sizeof *types);
    return attr->value.types == NULL ? tutti_fail(TUTTI_NO_MEMORY, "sample: no memory for types")
                                     : TUTTI_OK;
}

static tutti_status read_attr(const tutti_attr_spec *spec, const char *value, uint64_t seed,
                              tutti_arena *arena, tutti_attr *ret)
{
    tutti_attr attr = {.name = spec->name, .kind = spec->kind};
    tutti_type type;
    if (spec->kind == TUTTI_ATTR_TENSOR)
        TUTTI_TRY(tutti__sample_tensor(&value, seed, &type, &attr.value.tensor));
    else if (spec->kind == TUTTI_ATTR_TYPES)
        TUTTI_TRY(read_types(value, arena, &attr));
    else
        TUTTI_TRY(tutti__attr_parse(arena, spec, value, &attr));
    *ret = attr;
    return TUTTI_OK;
}

/* The end of a value: white space outside brackets and quotes. */
static const char *value_end(const char *at)
{
    int depth = 0;
    char quote = '\0';
    for (; *at != '\0' && (depth > 0 || quote != '\0' || !isspace((unsigned char)*at)); at++) {
        if (quote != '\0')
            quote = *at == quote ? '\0' : quote;
        else if (*at == '\'' || *at == '"')
            quote = *at;
        else
            depth += (*at == '[' || *at == '{') - (*at == ']' || *at == '}');
    }
    return at;
}

static const tutti_attr_spec *find_spec(const tutti_op *op, const char *name, size_t size)
{
    for (const tutti_attr_spec *spec = op->attrs; spec != NULL && spec->name != NULL; spec++)
        if (strlen(spec->name) == size && strncmp(spec->name, name, size) == 0)
            return spec;
    return NULL;
}

/* The value without quotes round it and without a comma behind it. */
static char *plain_value(tutti_arena *arena, const char *at, const char *end)
{
    if (end - at >= 2 && (*at == '\'' || *at == '"') && end[-1] == *at) {
        at++;
        end--;
    } else if (end > at && end[-1] == ',') {
        end--;
    }
    return tutti__arena_bytes(arena, at, (size_t)(end - at));
}

tutti_status tutti__sample_attrs(const tutti_op *op, const char *text, uint64_t seed,
                                 tutti_arena *arena, int capacity, tutti_attr *ret_attrs,
                                 int *ret_count)
{
    const char *at = text + strspn(text, " ");
    int count = 0;
    tutti_status status = TUTTI_OK;
    for (; *at != '\0' && status == TUTTI_OK; at += strspn(at, " ")) {
        size_t size = strcspn(at, "= ");
        const tutti_attr_spec *spec = find_spec(op, at, size);
        const char *end = value_end(at);
        char *value = at[size] == '=' ? plain_value(arena, at + size + 1, end) : NULL;
        if (spec == NULL || value == NULL || count == capacity)
            status = bad("no such attribute, or no =value", at);
        else if ((status = read_attr(spec, value, seed, arena, &ret_attrs[count])) == TUTTI_OK)
            count++;
        at = end;
    }
    for (int i = 0; status != TUTTI_OK && i < count; i++)
        if (ret_attrs[i].kind == TUTTI_ATTR_TENSOR)
            tutti_tensor_release(ret_attrs[i].value.tensor);
    if (status == TUTTI_OK)
        *ret_count = count;
    return status;
}
