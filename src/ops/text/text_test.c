/* text_test.c: operators on strings by hand. */
#include <string.h>

#include "ops/network/network_test.h"
#include "ops/text/strings.h"

/* A constant of strings: WORDS(g, "a", "b") is [2]. */
static tutti_sym words(tutti_graph *graph, int rank, const int64_t *dims, const char *const *list)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_STRING, rank, dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        CHECK_OK(tutti_tensor_set_string(tensor, i, list[i], (int64_t)strlen(list[i])));
    tutti_sym sym = tutti_constant(graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}
#define COUNT_OF(...) ((int64_t)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)))
#define WORDS(graph, ...)                                                                          \
    words(graph, 1, (int64_t[]){COUNT_OF(__VA_ARGS__)}, (const char *[]){__VA_ARGS__})

static void check_words(int line, tutti_sym sym, int64_t count, const char *const *expected)
{
    tutti_tensor *value = tutti__test_value(sym);
    CHECK_INT(tutti_tensor_count(value), count);
    for (int64_t i = 0; i < count; i++) {
        tutti_string s = tutti_tensor_get_string(value, i);
        if (s.size != (int64_t)strlen(expected[i]) ||
            (s.size > 0 && memcmp(s.data, expected[i], (size_t)s.size) != 0))
            tutti__test_fail(__FILE__, line, "element %d is '%.*s', expected '%s'", (int)i,
                             (int)s.size, s.data, expected[i]);
    }
    tutti_tensor_release(value);
}
#define CHECK_WORDS(sym, ...)                                                                      \
    check_words(__LINE__, sym, COUNT_OF(__VA_ARGS__), (const char *[]){__VA_ARGS__})

TUTTI_TEST(strings_change_case_and_are_stripped)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WORDS(g, " Gr\303\274n 7Z\t", "", "aBC", " \n");
    CHECK_WORDS(tutti_string_lower(x), " gr\303\274n 7z\t", "", "abc", " \n");
    CHECK_WORDS(tutti_string_upper(x), " GR\303\274N 7Z\t", "", "ABC", " \n");
    CHECK_WORDS(tutti_string_strip(x), "Gr\303\274n 7Z", "", "aBC", "");
    CHECK_SYM(tutti_string_length(x, false), 10, 0, 3, 2);
    CHECK_SYM(tutti_string_length(x, true), 9, 0, 3, 2);
    tutti_graph_destroy(g);
}

TUTTI_TEST(strings_have_parts)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WORDS(g, "a\303\274bcd", "xy", "");
    CHECK_WORDS(tutti_string_substring(x, 1, 2, false), "\303\274", "y", "");
    CHECK_WORDS(tutti_string_substring(x, 1, 2, true), "\303\274b", "y", "");
    CHECK_WORDS(tutti_string_substring(x, -3, 2, true), "bc", "xy", "");
    CHECK_WORDS(tutti_string_substring(x, 0, INT64_MAX, true), "a\303\274bcd", "xy", "");
    CHECK_WORDS(tutti_string_substring(x, INT64_MIN, 1, false), "a", "x", "");
    CHECK_WORDS(tutti_string_substring(x, INT64_MAX, 1, false), "", "", "");
    tutti_graph_destroy(g);
}

TUTTI_TEST(strings_join_and_compare)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym a = WORDS(g, "a", "", "ccc"), b = WORDS(g, "x");
    CHECK_WORDS(tutti_string_join("-", a, b, a), "a-x-a", "-x-", "ccc-x-ccc");
    CHECK_WORDS(tutti_string_join(NULL, b, a), "xa", "x", "xccc");
    CHECK_SYM(tutti_string_equal(a, WORDS(g, "a", "b", "cc")), 1, 0, 0);
    CHECK_SYM(tutti_string_equal(a, WORDS(g, "")), 0, 1, 0);
    CHECK_WORDS(tutti_gather(a, tutti_ints(g, 2, 0, 2), 0), "ccc", "a", "ccc");
    CHECK_WORDS(tutti_concatenate(TUTTI_SYMS(a, b)), "a", "", "ccc", "x");
    tutti_graph_destroy(g);
}

/* FNV-1a of "" is cbf29ce484222325, of "a" af63dc4c8601ec8c, of "foobar" 85944171f73967e8. */
TUTTI_TEST(strings_hash_the_same_everywhere)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WORDS(g, "", "a", "foobar");
    static const uint64_t hashes[] = {UINT64_C(0xcbf29ce484222325), UINT64_C(0xaf63dc4c8601ec8c),
                                      UINT64_C(0x85944171f73967e8)};
    static const int64_t buckets[] = {1, 10, 1000003};
    for (int k = 0; k < 3; k++) {
        tutti_tensor *y = tutti__test_value(tutti_string_hash_bucket(x, buckets[k]));
        for (int i = 0; i < 3; i++)
            CHECK_INT(tutti_tensor_get_int(y, i),
                      (int64_t)((hashes[i] ^ hashes[i] >> 32) % (uint64_t)buckets[k]));
        tutti_tensor_release(y);
    }
    tutti_graph_destroy(g);
}

TUTTI_TEST(strings_become_numbers)
{
    tutti_graph *g = tutti__test_graph();
    CHECK_SYM(tutti_string_to_number(WORDS(g, "1", " -2.5e1 ", ".5"), TUTTI_F32), 1, -25, 0.5);
    CHECK_SYM(tutti_string_to_number(WORDS(g, "127", "-128"), TUTTI_I8), 127, -128);
    tutti_graph_destroy(g);
    CHECK_REFUSES("string_to_number", "string[2]{=1,x2}", TUTTI_INVALID, "element 1 is 'x2'");
    CHECK_REFUSES("string_to_number", "string[1]{=128} | dtype=i8", TUTTI_INVALID,
                  "which is no i8");
    CHECK_REFUSES("string_to_number", "string[1]{=1.5} | dtype=i64", TUTTI_INVALID, "no i64");
    CHECK_REFUSES("string_to_number", "string[1]{=1} | dtype=bool", TUTTI_INVALID, "makes bool");
}

/* As ONNX's StringSplit. */
TUTTI_TEST(strings_are_split)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WORDS(g, "a,b,,c", "", "x");
    tutti_sym y = tutti_string_split(x, ",", 0);
    CHECK_WORDS(y, "a", "b", "", "c", "", "", "", "", "x", "", "", "");
    CHECK_SYM(tutti_sym_output(y, 1), 4, 1, 1);
    y = tutti_string_split(x, ",", 1);
    CHECK_WORDS(y, "a", "b,,c", "", "", "x", "");
    CHECK_SYM(tutti_sym_output(y, 1), 2, 1, 1);
    y = tutti_string_split(WORDS(g, "  hello world \t again ", "   ", "one"), NULL, 0);
    CHECK_WORDS(y, "hello", "world", "again", "", "", "", "one", "", "");
    CHECK_SYM(tutti_sym_output(y, 1), 3, 0, 1);
    y = tutti_string_split(WORDS(g, "  hello world  again"), NULL, 1);
    CHECK_WORDS(y, "hello", "world  again");
    y = tutti_string_split(WORDS(g, "a--b---c"), "--", 0);
    CHECK_WORDS(y, "a", "b", "-c");
    tutti_graph_destroy(g);
}

TUTTI_TEST(strings_match_expressions)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WORDS(g, "ann 12, bob 345", "none", "");
    CHECK_WORDS(tutti_string_regex_replace(x, "([a-z]+) ([0-9]+)", "\\2=\\1", false),
                "12=ann, 345=bob", "none", "");
    CHECK_WORDS(tutti_string_regex_replace(x, "[0-9]+", "<\\0>", true), "ann <12>, bob 345", "none",
                "");
    CHECK_WORDS(tutti_string_regex_replace(x, "^[a-z]", "\\\\", false), "\\nn 12, bob 345", "\\one",
                "");
    CHECK_WORDS(tutti_string_regex_replace(WORDS(g, "abc"), "x*", "-", false), "-a-b-c-");
    CHECK_SYM(tutti_string_regex_match(x, "[a-z]*"), 0, 1, 1);
    tutti_graph_destroy(g);
    CHECK_REFUSES("string_regex_match", "string[1]{=a} | pattern=a(", TUTTI_INVALID,
                  "is no extended regular expression");
    CHECK_REFUSES("string_regex_match", "string[1]{=a} | pattern=((a{1,255}){1,255}){1,255}",
                  TUTTI_TOO_LARGE, "multiply to more than");
    CHECK_REFUSES("string_regex_replace", "string[1]{=a} | pattern=(a) replacement=\\2",
                  TUTTI_INVALID, "the replacement has \\2");
}
