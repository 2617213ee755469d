/* csv.h: comma-separated values (RFC 4180): fields in quotes may hold delimiters, ends of lines and
 * doubled quotes. */
#ifndef TUTTI_IO_CSV_H
#define TUTTI_IO_CSV_H

#include "base/arena.h"
#include "io/lines.h"
#include "io/named.h"

/* Zero means the default. */
typedef struct tutti_csv_options {
    char delimiter;            /* ',' */
    bool no_header;            /* columns are "0", "1", … or `names` */
    const char *const *names;  /* of all columns, instead of the header's; NULL */
    const tutti_dtype *dtypes; /* of all columns; TUTTI_NO_DTYPE lets the values decide; NULL */
    const char *missing;       /* a text that stands for no value, beside the empty one; NULL */
} tutti_csv_options;

typedef struct tutti_csv {
    tutti_lines lines;
    tutti_csv_options options;
    size_t count; /* columns; 0 until the first line */
    char **names; /* in `arena` */
    tutti_arena arena;
    tutti_string *fields;
    char *first; /* without header: the first line, which the first call of next gives */
    size_t first_size;
    bool first_given;
} tutti_csv;

/* Takes the source over, also on failure. The options' arrays must outlive the reader. */
tutti_status tutti__csv_open(tutti_source *source, const tutti_csv_options *options,
                             tutti_csv *ret_csv);
/* The next row, csv.count fields, valid until the next call; NULL at the end. Empty lines are
 * skipped; rows with more or fewer fields are TUTTI_CORRUPT. */
tutti_status tutti__csv_next(tutti_csv *csv, const tutti_string **ret_fields);
bool tutti__csv_is_missing(const tutti_csv *csv, tutti_string field);
/* The rest of the file, a tensor [rows] for each column: i64 when all values are integers and none
 * is missing, f32 when all are numbers (missing ones are NaN), else strings (missing ones are
 * empty). A dtype that is given decides; a missing integer is then refused. */
tutti_status tutti__csv_table(tutti_csv *csv, tutti_named_tensors *ret_columns);
/* The types of the columns of that table, and its rows, without keeping them; *ret_types is from
 * malloc, csv->count of them. */
tutti_status tutti__csv_types(tutti_csv *csv, tutti_dtype **ret_types, int64_t *ret_rows);
void tutti__csv_close(tutti_csv *csv); /* zeroed is fine */

#endif
