/* nonsense_test.c: operators given wrong types and attributes answer with a status and a message.
 * Every sample is changed at random a few dozen times; what the shape rule still accepts is run.
 * Under sanitizers this finds reads out of bounds and overflows in rules and reference kernels. */
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/test.h"
#include "ops/reference.h"
#include "ops/sample.h"
#include "tables/op.h"

enum { MAX_SLOTS = 16, MAX_ATTRS = 32, TRIALS = 60, MAX_INPUT = 512, MAX_OUTPUT = 2048 };

typedef struct tutti_nonsense {
    uint64_t seed, drawn;
    tutti_type types[MAX_SLOTS], outputs[64];
    tutti_attr attrs[MAX_ATTRS];
    int64_t ints[8];
    double floats[8];
    tutti_infer rule;
} tutti_nonsense;

static int64_t below(tutti_nonsense *n, int64_t bound)
{
    return (int64_t)tutti__random_below((tutti_random_key){.seed = n->seed}, n->drawn++,
                                        (uint64_t)bound);
}

static int64_t odd_int(tutti_nonsense *n)
{
    static const int64_t choices[] = {0,
                                      1,
                                      -1,
                                      2,
                                      3,
                                      5,
                                      -2,
                                      7,
                                      8,
                                      9,
                                      100,
                                      -100,
                                      INT32_MAX,
                                      INT32_MIN,
                                      INT64_MAX,
                                      INT64_MIN,
                                      INT64_MAX / 2,
                                      1 << 20};
    return choices[below(n, (int64_t)TUTTI_COUNT(choices))];
}

static int64_t odd_dim(tutti_nonsense *n)
{
    static const int64_t choices[] = {0,        1, 1, 2, 2, 3, 4, 5, TUTTI_ANY, INT64_C(1) << 40,
                                      INT64_MAX};
    return choices[below(n, (int64_t)TUTTI_COUNT(choices))];
}

static void change_type(tutti_nonsense *n, tutti_type *type)
{
    int64_t how = below(n, 4);
    if (how == 0)
        type->dtype = (tutti_dtype)(1 + below(n, TUTTI_DTYPE_END - 1));
    if (how == 1 && type->rank > 0)
        type->dims[below(n, type->rank)] = odd_dim(n);
    if (how == 2 && type->rank > 0)
        type->rank--;
    if (how == 3) {
        type->rank = (int32_t)below(n, TUTTI_MAX_RANK + 1);
        for (int i = 0; i < type->rank; i++)
            type->dims[i] = odd_dim(n);
    }
}

static void change_attr(tutti_nonsense *n, tutti_attr *attr)
{
    static const char *const words[] = {"",  "same", "valid",        "ij,jk->ik",
                                        "[", "->",   "no such thing"};
    switch (attr->kind) {
    case TUTTI_ATTR_INT:
        attr->value.i = odd_int(n);
        break;
    case TUTTI_ATTR_FLOAT:
        attr->value.f = (double)odd_int(n) * 0.5;
        break;
    case TUTTI_ATTR_STRING:
        attr->value.s = words[below(n, (int64_t)TUTTI_COUNT(words))];
        attr->count = (int32_t)strlen(attr->value.s);
        break;
    case TUTTI_ATTR_INTS:
        attr->count = (int32_t)below(n, 9);
        for (int i = 0; i < attr->count; i++)
            n->ints[i] = odd_int(n);
        attr->value.ints = n->ints;
        break;
    case TUTTI_ATTR_FLOATS:
        attr->count = (int32_t)below(n, 9);
        for (int i = 0; i < attr->count; i++)
            n->floats[i] = (double)odd_int(n);
        attr->value.floats = n->floats;
        break;
    default:
        break; /* tensors, types and sub-graphs are checked where they are made */
    }
}

/* The sample with one or two things about it changed. An attribute "outputs" must stay: the number
 * of outputs is taken from it before the shape rule is asked. */
static void make_nonsense(tutti_nonsense *n, const tutti_sample *sample)
{
    memcpy(n->types, sample->types, (size_t)sample->input_count * sizeof *n->types);
    memcpy(n->attrs, sample->attrs, (size_t)sample->attr_count * sizeof *n->attrs);
    memset(n->outputs, 0, sizeof n->outputs);
    n->rule = tutti__sample_rule(sample);
    n->rule.inputs = n->types;
    n->rule.attrs = n->attrs;
    n->rule.outputs = n->outputs;
    for (int64_t changes = 1 + below(n, 2); changes > 0; changes--) {
        if (sample->attr_count > 0 && (sample->input_count == 0 || below(n, 2) == 0)) {
            tutti_attr *attr = &n->attrs[below(n, sample->attr_count)];
            if (strcmp(attr->name, "outputs") != 0)
                change_attr(n, attr);
        } else if (sample->input_count > 0) {
            change_type(n, &n->types[below(n, sample->input_count)]);
        }
    }
}

/* Few enough elements to run; an empty tensor counts as if its axes of 0 were 1. */
static bool is_small(const tutti_type *type, int64_t limit)
{
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++) {
        if (type->dims[i] < 0 || type->dims[i] > limit)
            return false;
        count *= type->dims[i] > 0 ? type->dims[i] : 1;
        if (count > limit)
            return false;
    }
    return true;
}

static tutti_tensor *draw(tutti_nonsense *n, const tutti_type *type)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_create(type->dtype, type->rank, type->dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, (double)below(n, 9) - 4);
    return tensor;
}

/* Runs what the shape rule accepted, when it is small. Any status will do. */
static void run(tutti_nonsense *n)
{
    tutti_tensor *inputs[MAX_SLOTS] = {0}, *outputs[64] = {0};
    for (int i = 0; i < n->rule.input_count; i++)
        if (!is_small(&n->types[i], MAX_INPUT))
            return;
    for (int i = 0; i < n->rule.output_count; i++)
        if (tutti_type_is_static(&n->outputs[i]) && !is_small(&n->outputs[i], MAX_OUTPUT))
            return;
    for (int i = 0; i < n->rule.input_count; i++)
        inputs[i] = draw(n, &n->types[i]);
    (void)tutti__reference_op(&n->rule, inputs, outputs);
    for (int i = 0; i < n->rule.input_count; i++)
        tutti_tensor_release(inputs[i]);
    for (int i = 0; i < n->rule.output_count; i++)
        tutti_tensor_release(outputs[i]);
}

static void check_accepted(const tutti_nonsense *n, const tutti_sample *sample)
{
    for (int i = 0; i < n->rule.output_count; i++) {
        const tutti_type *type = &n->outputs[i];
        bool sound = type->dtype > TUTTI_NO_DTYPE && type->dtype < TUTTI_DTYPE_END &&
                     type->rank >= 0 && type->rank <= TUTTI_MAX_RANK;
        for (int axis = 0; sound && axis < type->rank; axis++)
            sound = type->dims[axis] >= TUTTI_ANY;
        char text[TUTTI_TYPE_TEXT];
        if (!sound)
            tutti__test_fail(
                __FILE__, __LINE__, "%s \"%s\", seed %llu: the shape rule made %s of nonsense",
                sample->op->name, sample->text, (unsigned long long)n->seed,
                type->rank >= 0 && type->rank <= TUTTI_MAX_RANK ? tutti_type_text(type, text)
                                                                : "no type");
    }
}

static void try_nonsense(const tutti_sample *sample, uint64_t seed)
{
    tutti_nonsense n = {.seed = seed};
    make_nonsense(&n, sample);
    tutti_fail(TUTTI_OK, "no message");
    tutti_status status = sample->op->infer(&n.rule);
    if (status != TUTTI_OK) {
        if (strcmp(tutti_error_message(), "no message") == 0)
            tutti__test_fail(__FILE__, __LINE__, "%s \"%s\", seed %llu: refused without a message",
                             sample->op->name, sample->text, (unsigned long long)seed);
        return;
    }
    check_accepted(&n, sample);
    run(&n);
}

TUTTI_TEST(every_operator_bears_nonsense)
{
    for (const tutti_op *const *op = tutti__op_table; *op != NULL; op++)
        for (const char *const *text = (*op)->samples; text != NULL && *text != NULL; text++) {
            tutti_sample *sample = NULL;
            if ((*op)->flags & (TUTTI_OP_BLOCKING | TUTTI_OP_COLLECTIVE | TUTTI_OP_CONTROL))
                continue;
            CHECK_OK(tutti__sample_parse(*op, *text, 3, &sample));
            if (sample->input_count <= MAX_SLOTS && sample->output_count <= 64)
                for (int i = 0; i < TRIALS; i++)
                    try_nonsense(sample,
                                 tutti__hash_mix(tutti__hash_string(1, *text), (uint64_t)i));
            tutti__sample_free(sample);
        }
}
