/* json_test.c: values, refusals with their place, exact numbers, round trips, hostile texts. */
#include "io/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "io/number.h"

static tutti_arena arena;

static tutti_status parse(const char *text, const tutti_json **ret)
{
    tutti__arena_free(&arena);
    return tutti__json_parse("t", text, strlen(text), NULL, &arena, ret);
}

static const tutti_json *parsed(const char *text)
{
    const tutti_json *root;
    CHECK_OK(parse(text, &root));
    return root;
}

static void refused(const char *text, const char *part)
{
    const tutti_json *root;
    CHECK_STATUS(parse(text, &root), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), part);
    tutti__arena_free(&arena);
}

TUTTI_TEST(json_reads_values)
{
    const tutti_json *root =
        parsed(" {\"a\": [1, -2.5e1, true, null], \"b\\n\": {\"c\": \"x\\u00e9\\ud83d\\ude00\"}} ");
    const tutti_json *a = tutti__json_get(root, "a");
    CHECK_INT(root->count, 2);
    CHECK_INT(a->count, 4);
    CHECK_INT(tutti__json_int(a->as.first, 0), 1);
    CHECK_NEAR(tutti__json_real(a->as.first->next, 0), -25, 0);
    CHECK(tutti__json_bool(a->as.first->next->next, false));
    CHECK_STR(tutti__json_text(tutti__json_get(tutti__json_get(root, "b\n"), "c"), ""),
              "x\xc3\xa9\xf0\x9f\x98\x80");
    CHECK(tutti__json_get(root, "none") == NULL);
    CHECK(tutti__json_get(NULL, "none") == NULL);
    CHECK_INT(tutti__json_int(tutti__json_get(root, "none"), 7), 7);
    CHECK_STR(tutti__json_kind_text(a), "an array");
    tutti__arena_free(&arena);
}

TUTTI_TEST(json_numbers_are_exact)
{
    CHECK_INT(tutti__json_int(parsed("9223372036854775807"), 0), INT64_MAX);
    CHECK_INT(tutti__json_int(parsed("-9223372036854775808"), 0), INT64_MIN);
    CHECK_INT(parsed("9223372036854775808")->kind, TUTTI_JSON_REAL);
    CHECK(parsed("0.1")->as.real == 0.1);
    CHECK(parsed("1.7976931348623157e308")->as.real == 1.7976931348623157e308);
    CHECK(parsed("5e-324")->as.real == 5e-324);
    CHECK_INT(parsed("1.0")->kind, TUTTI_JSON_REAL);
    refused("1e999", "does not fit a double");
    char text[TUTTI_NUMBER_TEXT];
    CHECK_STR(tutti__number_text(0.1, false, text), "0.1");
    CHECK_STR(tutti__number_text((double)0.1F, true, text), "0.1");
    CHECK_STR(tutti__number_text(1.0 / 3, false, text), "0.3333333333333333");
    tutti__arena_free(&arena);
}

TUTTI_TEST(json_refuses_and_says_where)
{
    refused("", "ends at offset 0");
    refused("{\"a\":1,}", "offset 7: found '}' in JSON, expected a key");
    refused("[1 2]", "offset 3: found '2' in JSON, expected ',' or ']'");
    refused("[1]x", "offset 3");
    refused("01", "offset 0: found '0'");
    refused("1.", "digit after the point");
    refused("-", "ends at offset 1");
    refused("1e+", "exponent");
    refused("\"\\x\"", "after a backslash");
    refused("\"\\ud800x\"", "surrogate");
    refused("\"\\udc00\"", "surrogate");
    refused("\"\\u12\"", "hexadecimal");
    refused("\"a\nb\"", "0x0a");
    refused("\"\xff\"", "UTF-8");
    refused("\"\xc0\xaf\"", "UTF-8");
    refused("\"\xed\xa0\x80\"", "UTF-8");
    refused("\"abc", "closing quote");
    refused("\"abc\\", "closing quote");
    refused("tru", "expected a value");
    refused("{\"a\\u0000\":1}", "without NUL");
    refused("{\"a\":1,\"b\":2,\"a\":3}", "key \"a\" twice");
}

TUTTI_TEST(json_limits_depth_values_and_bytes)
{
    const tutti_json *root;
    tutti_json_limits limits = {.depth = 3, .values = 5, .bytes = 20};
    CHECK_OK(tutti__json_parse("t", "[[[1]]]", 7, &limits, &arena, &root));
    CHECK_STATUS(tutti__json_parse("t", "[[[[]]]]", 8, &limits, &arena, &root), TUTTI_TOO_LARGE);
    CHECK_OK(tutti__json_parse("t", "[1,1,1,1]", 9, &limits, &arena, &root));
    CHECK_STATUS(tutti__json_parse("t", "[1,1,1,1,1]", 11, &limits, &arena, &root),
                 TUTTI_TOO_LARGE);
    CHECK_STATUS(tutti__json_parse("t", "\"012345678901234567890\"", 23, &limits, &arena, &root),
                 TUTTI_TOO_LARGE);
    char *deep = malloc(100000);
    CHECK(deep != NULL);
    memset(deep, '[', 100000);
    CHECK_STATUS(tutti__json_parse("t", deep, 100000, NULL, &arena, &root), TUTTI_TOO_LARGE);
    free(deep);
    tutti__arena_free(&arena);
}

static void write_sample(tutti_json_writer *w)
{
    tutti__json_begin(w, '{');
    tutti__json_key(w, "list");
    tutti__json_begin(w, '[');
    tutti__json_put_int(w, -3);
    tutti__json_put_real(w, 2);
    tutti__json_put_float(w, 0.1F);
    tutti__json_put_real(w, INFINITY);
    tutti__json_end(w);
    tutti__json_key(w, "empty");
    tutti__json_begin(w, '{');
    tutti__json_end(w);
    tutti__json_key(w, "te\"xt");
    tutti__json_put_string(w, "a\n\x01\xc3\xa9\xff");
    tutti__json_end(w);
}

TUTTI_TEST(json_writes_what_it_reads)
{
    tutti_text line = {0}, pretty = {0}, again = {0};
    tutti_json_writer w = {.text = &line}, wide = {.text = &pretty, .indent = 2};
    write_sample(&w);
    CHECK_OK(tutti__json_finish(&w));
    CHECK_STR(line.data, "{\"list\": [-3, 2.0, 0.1, null], \"empty\": {}, \"te\\\"xt\": "
                         "\"a\\n\\u0001\xc3\xa9\xef\xbf\xbd\"}");
    write_sample(&wide);
    CHECK_OK(tutti__json_finish(&wide));
    CHECK_CONTAINS(pretty.data, "{\n  \"list\": [\n    -3,\n    2.0,\n");
    tutti_json_writer second = {.text = &again};
    tutti__json_put(&second, parsed(pretty.data));
    CHECK_OK(tutti__json_finish(&second));
    CHECK_STR(again.data, line.data);
    tutti__text_free(&line);
    tutti__text_free(&pretty);
    tutti__text_free(&again);
    tutti__arena_free(&arena);
}

TUTTI_TEST(json_writer_notices_a_wrong_order)
{
    tutti_text text = {0};
    tutti_json_writer no_key = {.text = &text}, unclosed = no_key, two = no_key, deep = no_key;
    tutti__json_begin(&no_key, '{');
    tutti__json_put_int(&no_key, 1);
    tutti__json_end(&no_key);
    CHECK_STATUS(tutti__json_finish(&no_key), TUTTI_INVALID);
    tutti__json_begin(&unclosed, '[');
    CHECK_STATUS(tutti__json_finish(&unclosed), TUTTI_INVALID);
    tutti__json_put_int(&two, 1);
    tutti__json_put_int(&two, 1);
    CHECK_STATUS(tutti__json_finish(&two), TUTTI_INVALID);
    for (int i = 0; i < 100; i++)
        tutti__json_begin(&deep, '[');
    for (int i = 0; i < 100; i++)
        tutti__json_end(&deep);
    CHECK_STATUS(tutti__json_finish(&deep), TUTTI_INVALID);
    tutti__text_free(&text);
}

/* Every prefix and every flipped bit either parses or fails with a message; memory is checked by
 * the sanitizers. */
TUTTI_TEST(json_survives_damage)
{
    static const char good[] =
        "{\"a\":[1,2.5,-3e2,\"x\\u00e9\\n\xc3\xa9\"],\"b\":{\"c\":null,\"d\":true}}";
    char text[sizeof good];
    const tutti_json *root;
    for (size_t n = 0; n + 1 < sizeof good; n++)
        CHECK_STATUS(tutti__json_parse("t", good, n, NULL, &arena, &root), TUTTI_CORRUPT);
    for (size_t bit = 0; bit < 8 * (sizeof good - 1); bit++) {
        memcpy(text, good, sizeof good);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        tutti__arena_reset(&arena);
        tutti_status status = tutti__json_parse("t", text, sizeof good - 1, NULL, &arena, &root);
        CHECK(status == TUTTI_OK || status == TUTTI_CORRUPT);
    }
    tutti__arena_free(&arena);
}
