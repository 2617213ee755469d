/* csv_test.c: lines and tables: quotes, types, missing values, what is refused. */
#include "io/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "io/inflate.h"

static tutti_status parse(const char *text, const tutti_csv_options *options,
                          tutti_named_tensors *ret)
{
    tutti_source *source;
    tutti_csv csv;
    CHECK_OK(tutti__source_bytes("c", text, strlen(text), &source));
    TUTTI_TRY(tutti__csv_open(source, options, &csv));
    tutti_status status = tutti__csv_table(&csv, ret);
    tutti__csv_close(&csv);
    return status;
}

static void check_text(const tutti_tensor *tensor, int64_t index, const char *expected)
{
    tutti_string text = tutti_tensor_get_string(tensor, index);
    CHECK_INT(text.size, strlen(expected));
    CHECK(text.size == 0 || memcmp(text.data, expected, (size_t)text.size) == 0);
}

TUTTI_TEST(csv_infers_types)
{
    tutti_named_tensors t = {0};
    CHECK_OK(parse(
        "\xef\xbb\xbfid,price,name,gap\r\n1,2.5,\"a,b\"\"c\"\"\r\nd\",\r\n-2,1e3,x,7\r\n\r\n3,"
        "nan,,8",
        NULL, &t));
    CHECK_INT(t.count, 4);
    CHECK_STR(t.items[0].name, "id");
    CHECK_INT(tutti_tensor_dtype(t.items[0].tensor), TUTTI_I64);
    CHECK_INT(tutti_tensor_count(t.items[0].tensor), 3);
    CHECK_INT(tutti_tensor_get_int(t.items[0].tensor, 1), -2);
    CHECK_INT(tutti_tensor_dtype(t.items[1].tensor), TUTTI_F32);
    CHECK_NEAR(tutti_tensor_get(t.items[1].tensor, 1), 1000, 0);
    check_text(t.items[2].tensor, 0, "a,b\"c\"\r\nd");
    check_text(t.items[2].tensor, 2, "");
    CHECK_INT(tutti_tensor_dtype(t.items[3].tensor), TUTTI_F32);
    CHECK(isnan(tutti_tensor_get(t.items[3].tensor, 0)));
    tutti_named_tensors_clear(&t);
}

/* The same types as of the table, from memory that grows with columns and not with rows. */
TUTTI_TEST(csv_tells_types_without_keeping_rows)
{
    static const char *const texts[] = {"a,b,c,d,e\n1,2.5,x,,\n-2,1e3,3,7,\n", "a,b\n",
                                        "a\n1\n\"\"\n2\n", "a,b\nnan,1\n2,z\n1,2\n"};
    for (size_t i = 0; i < TUTTI_COUNT(texts); i++) {
        tutti_named_tensors table = {0};
        tutti_source *source;
        tutti_csv csv;
        tutti_dtype *types;
        int64_t rows;
        CHECK_OK(parse(texts[i], NULL, &table));
        CHECK_OK(tutti__source_bytes("c", texts[i], strlen(texts[i]), &source));
        CHECK_OK(tutti__csv_open(source, NULL, &csv));
        CHECK_OK(tutti__csv_types(&csv, &types, &rows));
        CHECK_INT(csv.count, table.count);
        for (size_t c = 0; c < table.count; c++) {
            CHECK_INT(types[c], tutti_tensor_dtype(table.items[c].tensor));
            CHECK_INT(rows, tutti_tensor_count(table.items[c].tensor));
        }
        free(types);
        tutti__csv_close(&csv);
        tutti_named_tensors_clear(&table);
    }
}

TUTTI_TEST(csv_takes_types_delimiters_and_rows_without_header)
{
    static const tutti_dtype dtypes[] = {TUTTI_F64, TUTTI_STRING, TUTTI_U8};
    static const char *const names[] = {"x", "y", "z"};
    tutti_csv_options options = {
        .delimiter = ';', .no_header = true, .names = names, .dtypes = dtypes, .missing = "?"};
    tutti_named_tensors t = {0};
    CHECK_OK(parse("\"1\";2;3\n?;?;255\n", &options, &t));
    CHECK_INT(t.count, 3);
    CHECK_STR(t.items[2].name, "z");
    CHECK_NEAR(tutti_tensor_get(t.items[0].tensor, 0), 1, 0);
    CHECK(isnan(tutti_tensor_get(t.items[0].tensor, 1)));
    check_text(t.items[1].tensor, 0, "2");
    check_text(t.items[1].tensor, 1, "");
    tutti_named_tensors_clear(&t);
    CHECK_STATUS(parse("1;2;256\n", &options, &t), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "row 1, column 'z': '256' is no u8");
    CHECK_STATUS(parse("1;2;?\n", &options, &t), TUTTI_CORRUPT);
    CHECK_STATUS(parse("a;2;3\n", &options, &t), TUTTI_CORRUPT);
}

TUTTI_TEST(csv_says_which_line_is_wrong)
{
    tutti_named_tensors t = {0};
    CHECK_STATUS(parse("a,b\n1,2\n1,2,3\n", NULL, &t), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "line 3 has 3 fields, expected 2");
    CHECK_STATUS(parse("a,b\n1,\"2\n", NULL, &t), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "never closed");
    CHECK_STATUS(parse("a,b\n1,\"2\"x\n", NULL, &t), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "closing quote");
    CHECK_STATUS(parse("a,b\n1,2\"\"x\n", NULL, &t), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "line 2");
    CHECK_STATUS(parse("", NULL, &t), TUTTI_CORRUPT);
    CHECK_STATUS(parse("\n\n", NULL, &t), TUTTI_CORRUPT);
    CHECK_STATUS(parse("a,b\r1,2\r3,4\r", NULL, &t),
                 TUTTI_CORRUPT); /* lines that end in CR alone */
    CHECK_CONTAINS(tutti_error_message(), "carriage return");
    CHECK_OK(parse("a,b\n", NULL, &t));
    CHECK_INT(tutti_tensor_count(t.items[1].tensor), 0);
    tutti_named_tensors_clear(&t);
}

TUTTI_TEST(lines_of_any_length_and_a_limit)
{
    size_t size = 300000;
    char *text = malloc(size), *line;
    tutti_source *source;
    tutti_lines lines;
    size_t length;
    CHECK(text != NULL);
    memset(text, 'x', size);
    memcpy(text, "one\r\n\ntwo\n", 10);
    text[size - 3] = '\n';
    CHECK_OK(tutti__source_bytes("l", text, size, &source));
    tutti__lines_open(source, '\0', 0, &lines);
    static const size_t expected[] = {3, 0, 3, 299987, 2};
    for (size_t i = 0; i < 5; i++) {
        CHECK_OK(tutti__lines_next(&lines, &line, &length));
        CHECK(line != NULL);
        CHECK_INT(length, expected[i]);
        CHECK_INT(lines.number, i + 1);
        if (i == 2)
            CHECK_INT(tutti__lines_tell(&lines), 10);
    }
    CHECK_OK(tutti__lines_next(&lines, &line, &length));
    CHECK(line == NULL);
    tutti__lines_close(&lines);
    CHECK_OK(tutti__source_bytes("l", text, size, &source));
    tutti__lines_open(source, '\0', 100000, &lines);
    for (int i = 0; i < 3; i++)
        CHECK_OK(tutti__lines_next(&lines, &line, &length));
    CHECK_STATUS(tutti__lines_next(&lines, &line, &length), TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "line 4");
    tutti__lines_close(&lines);
    free(text);
}
