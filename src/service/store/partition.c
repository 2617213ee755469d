/* partition.c: see partition.h. Sizes are 64 bits, products of them 128. */
#include "service/store/partition.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 wide;

static int64_t axis_size(const tutti_type *type, int axis)
{
    return axis < type->rank ? type->dims[axis] : 1;
}

/* Bytes of one slice along an axis. */
static wide slice_bytes(const tutti_type *type, int axis)
{
    wide bytes = (wide)tutti_dtype_size(type->dtype);
    for (int i = 0; i < type->rank; i++)
        bytes *= i == axis ? 1 : type->dims[i];
    return bytes > 0 ? bytes : 1;
}

static int64_t within(int64_t pieces, int64_t size, int64_t n)
{
    pieces = n > 0 && pieces > n ? n : pieces;
    pieces = pieces > size ? size : pieces;
    return pieces > 1 ? pieces : 1;
}

int64_t tutti__store_partition_fixed_size(const tutti_type *type, int64_t n)
{
    return within(n, axis_size(type, 0), n);
}

int64_t tutti__store_partition_min_size(const tutti_type *type, int64_t bytes, int64_t n)
{
    wide slice = slice_bytes(type, 0), rows = (bytes + slice - 1) / slice;
    return within((int64_t)(axis_size(type, 0) / (rows > 1 ? rows : 1)), axis_size(type, 0), n);
}

int64_t tutti__store_partition_variable_axis_size(const tutti_type *type, int axis, int64_t bytes,
                                                  int64_t n)
{
    wide rows = bytes / slice_bytes(type, axis);
    rows = rows > 1 ? rows : 1;
    return within((int64_t)((axis_size(type, axis) + rows - 1) / rows), axis_size(type, axis), n);
}

int64_t tutti__store_partition_max_size(const tutti_type *type, int64_t bytes, int64_t n)
{
    return tutti__store_partition_variable_axis_size(type, 0, bytes, n);
}

/* ---- texts ---- */

enum { ARGUMENTS = TUTTI_MAX_RANK };

/* Numbers with commas between, up to `end`; how many, or -1. */
static int read_numbers(const char *text, char end, int64_t *ret)
{
    int count = 0;
    while (*text && *text != end) {
        char *after;
        while (*text == ' ')
            text++;
        if (count == ARGUMENTS || *text < '0' || *text > '9')
            return -1;
        ret[count++] = strtoll(text, &after, 10);
        if (*after == ',' ? after[1] == '\0' || after[1] == end : *after != end)
            return -1;
        text = *after == ',' ? after + 1 : after;
    }
    return *text == end && (end == '\0' || text[1] == '\0') ? count : -1;
}

static tutti_status partition_mistake(const char *text)
{
    return tutti_fail(TUTTI_INVALID,
                      "there is no partitioner '%s'; there are: fixed_size(n), min_size(bytes, n), "
                      "max_size(bytes[, n]), variable_axis_size(axis, bytes[, n])",
                      text);
}

/* "4,1": pieces along each axis. */
static tutti_status parse_pieces(const char *text, const tutti_type *type,
                                 tutti_store_partition *ret)
{
    int64_t pieces[ARGUMENTS];
    int count = read_numbers(text, '\0', pieces);
    tutti_store_partition made = {0, 1};
    if (count != type->rank)
        return partition_mistake(text);
    for (int i = 0; i < count; i++) {
        if (pieces[i] == 1)
            continue;
        if (made.pieces > 1 || pieces[i] < 1 || pieces[i] > type->dims[i])
            return tutti_fail(TUTTI_INVALID,
                              "a partition '%s': one dimension can be cut, into at most as many "
                              "pieces as it has rows",
                              text);
        made = (tutti_store_partition){i, pieces[i]};
    }
    *ret = made;
    return TUTTI_OK;
}

tutti_status tutti__store_partition_parse(const char *text, const tutti_type *type,
                                          tutti_store_partition *ret_partition)
{
    static const struct {
        const char *name;
        int least, most;
    } known[] = {{"fixed_size(", 1, 1},
                 {"min_size(", 2, 2},
                 {"max_size(", 1, 2},
                 {"variable_axis_size(", 2, 3}};
    int64_t n[ARGUMENTS] = {0};
    size_t which = 0;
    if (text[0] == '\0') {
        *ret_partition = (tutti_store_partition){0, 1};
        return TUTTI_OK;
    }
    if (text[0] >= '0' && text[0] <= '9')
        return parse_pieces(text, type, ret_partition);
    while (which < TUTTI_COUNT(known) &&
           strncmp(text, known[which].name, strlen(known[which].name)) != 0)
        which++;
    int count =
        which < TUTTI_COUNT(known) ? read_numbers(text + strlen(known[which].name), ')', n) : -1;
    if (count < 0 || count < known[which].least || count > known[which].most)
        return partition_mistake(text);
    if (which == 3 && n[0] >= type->rank)
        return tutti_fail(TUTTI_INVALID, "a partitioner '%s' of a variable of %d dimensions", text,
                          type->rank);
    *ret_partition = (tutti_store_partition){
        which == 3 ? (int)n[0] : 0,
        which == 0   ? tutti__store_partition_fixed_size(type, n[0])
        : which == 1 ? tutti__store_partition_min_size(type, n[0], n[1])
        : which == 2 ? tutti__store_partition_max_size(type, n[0], n[1])
                     : tutti__store_partition_variable_axis_size(type, (int)n[0], n[1], n[2])};
    return TUTTI_OK;
}

/* ---- pieces ---- */

int64_t tutti__store_partition_begin(const tutti_type *type, const tutti_store_partition *p,
                                     int64_t i)
{
    return (int64_t)((wide)i * axis_size(type, p->axis) / p->pieces);
}

int64_t tutti__store_partition_piece_of(const tutti_type *type, const tutti_store_partition *p,
                                        int64_t row)
{
    int64_t i = (int64_t)((wide)row * p->pieces /
                          (axis_size(type, p->axis) ? axis_size(type, p->axis) : 1));
    while (i > 0 && tutti__store_partition_begin(type, p, i) > row)
        i--;
    while (i + 1 < p->pieces && tutti__store_partition_begin(type, p, i + 1) <= row)
        i++;
    return i;
}

tutti_type tutti__store_partition_type(const tutti_type *type, const tutti_store_partition *p,
                                       int64_t i)
{
    tutti_type piece = *type;
    if (p->axis < type->rank)
        piece.dims[p->axis] =
            tutti__store_partition_begin(type, p, i + 1) - tutti__store_partition_begin(type, p, i);
    return piece;
}
