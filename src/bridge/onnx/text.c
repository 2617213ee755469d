/* text.c: strings. */
#include "bridge/onnx.h"

#include <string.h>

static void read_concat(tutti_onnx_import *m)
{
    tutti__onnx_made(m, 0, tutti_string_join("", tutti__onnx_sym(m, 0), tutti__onnx_sym(m, 1)));
}

static void read_split(tutti_onnx_import *m)
{
    int64_t most = tutti__onnx_attr_int(m, "maxsplit", 0);
    tutti_sym y = tutti_string_split(tutti__onnx_sym(m, 0),
                                     tutti__onnx_attr_string(m, "delimiter", ""), most);
    for (int i = 0; y.node && i < 2; i++)
        tutti__onnx_made(m, i, tutti_sym_output(y, i));
}

static void read_match(tutti_onnx_import *m)
{
    const char *pattern = tutti__onnx_attr_string(m, "pattern", "");
    if (strstr(pattern, "(?") || strstr(pattern, "\\d") || strstr(pattern, "\\w"))
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                              "'%s' is more than an extended regular expression of POSIX", pattern);
    else
        tutti__onnx_made(m, 0, tutti_string_regex_match(tutti__onnx_sym(m, 0), pattern));
}

/* Capital or small letters; words that are left out make the length depend on data. */
static void read_normalizer(tutti_onnx_import *m)
{
    const char *action = tutti__onnx_attr_string(m, "case_change_action", "NONE");
    const tutti_onnx_attr *words = tutti__onnx_attr(m->node, "stopwords", ONNX_STRINGS);
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (words && words->strings.count > 0)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "stopwords are not supported");
    else if (strcmp(action, "NONE") == 0)
        tutti__onnx_made(m, 0, tutti_identity(x));
    else
        tutti__onnx_made(
            m, 0, strcmp(action, "LOWER") == 0 ? tutti_string_lower(x) : tutti_string_upper(x));
}

const tutti_onnx_op tutti_onnx_string_concat = {
    .type = "StringConcat",
    .read = read_concat,
};

const tutti_onnx_op tutti_onnx_string_split = {
    .type = "StringSplit",
    .read = read_split,
};

const tutti_onnx_op tutti_onnx_regex_full_match = {
    .type = "RegexFullMatch",
    .read = read_match,
    .note = "expressions of POSIX",
};

const tutti_onnx_op tutti_onnx_string_normalizer = {
    .type = "StringNormalizer",
    .read = read_normalizer,
    .note = "without stopwords; letters of ASCII",
};
