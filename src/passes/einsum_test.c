/* einsum_test.c: einsum as sums, products and transposes: the graph before and after with equal
 * results, and random equations through a session against the reference kernel. */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "ops/reference.h"
#include "ops/sample.h"
#include "passes/testing.h"
#include "tutti/tutti.h"

extern const tutti_pass tutti_pass_einsum;

#define F32(...) TUTTI_TYPE(TUTTI_F32, __VA_ARGS__)
#define BF16(...) TUTTI_TYPE(TUTTI_BF16, __VA_ARGS__)

/* ---- graphs ---- */

/* Whether an einsum of values of these types becomes what is said. */
static void becomes_on(const tutti_pass_context *context, const char *equation, int count,
                       const tutti_type *types, const char *after)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym operands[8];
    for (int i = 0; i < count; i++)
        operands[i] = tutti__test_input(g, i, types[i]);
    tutti__test_result((tutti_einsum)(equation, count, operands));
    tutti__test_pass(&tutti_pass_einsum, context, g, NULL, after);
    tutti_graph_destroy(g);
}

static const tutti_pass_context *deterministic(void)
{
    static tutti_pass_context context;
    context = *tutti__test_on_cpu();
    context.deterministic = true;
    return &context;
}

#define TYPES(...)                                                                                 \
    sizeof((tutti_type[]){__VA_ARGS__}) / sizeof(tutti_type), (tutti_type[])                       \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define BECOMES(equation, after, ...)                                                              \
    becomes_on(tutti__test_on_cpu(), equation, TYPES(__VA_ARGS__), after)
#define BECOMES_DETERMINISTIC(equation, after, ...)                                                \
    becomes_on(deterministic(), equation, TYPES(__VA_ARGS__), after)
#define STAYS(equation, after, ...) BECOMES(equation, after, __VA_ARGS__)

TUTTI_TEST(einsum_is_a_product_of_matrices)
{
    BECOMES("ij,jk->ik", "return matmul(p0, p1)", F32(2, 3), F32(3, 4));
    BECOMES("ji,jk->ik", "return matmul(p0, p1){transpose_a=true}", F32(3, 2), F32(3, 4));
    BECOMES("ij,kj->ki", "return matmul(p1, p0){transpose_b=true}", F32(2, 3), F32(4, 3));
    BECOMES("bij,bjk->bik", "return matmul(p0, p1)", F32(2, 3, 4), F32(2, 4, 5));
    BECOMES("bhqd,bhkd->bhqk", "return matmul(p0, p1){transpose_b=true}", F32(2, 3, 4, 5),
            F32(2, 3, 6, 5));
    BECOMES("ik,kj->ij", "return matmul(p0, p1)", BF16(2, 3), BF16(3, 4));
}

/* A matrix that is moved anyway keeps its last axis. */
TUTTI_TEST(einsum_moves_as_little_as_it_can)
{
    BECOMES("bqhd,bkhd->bhqk",
            "return matmul(transpose(p0){order=[0,2,1,3]}, "
            "transpose(p1){order=[0,2,1,3]}){transpose_b=true}",
            F32(2, 4, 3, 5), F32(2, 6, 3, 5));
    BECOMES("bhqk,bkhd->bqhd",
            "return transpose(matmul(p0, transpose(p1){order=[0,2,1,3]})){order=[0,2,1,3]}",
            F32(2, 3, 4, 5), F32(2, 5, 3, 6));
    /* The smaller operand is turned, not the larger one. */
    BECOMES("ijk,kjl->il",
            "return matmul(reshape(p0){dims=[4,12]}, "
            "reshape(transpose(p1){order=[1,0,2]}){dims=[12,2]})",
            F32(4, 3, 4), F32(4, 3, 2));
}

TUTTI_TEST(einsum_joins_axes)
{
    BECOMES("bij,jkl->bikl",
            "return reshape(matmul(reshape(p0){dims=[6,4]}, reshape(p1){dims=[4,30]}))"
            "{dims=[2,3,5,6]}",
            F32(2, 3, 4), F32(4, 5, 6));
    BECOMES("bij,jkl->blik",
            "return transpose(reshape(matmul(reshape(p0){dims=[6,4]}, reshape(p1){dims=[4,30]}))"
            "{dims=[2,3,5,6]}){order=[0,3,1,2]}",
            F32(2, 3, 4), F32(4, 5, 6));
    BECOMES("abcdefgh,abcdefgh->abcdefg",
            "return reshape(matmul(reshape(p0){dims=[128,1,2]}, reshape(p1){dims=[128,2,1]}))"
            "{dims=[2,2,2,2,2,2,2]}",
            BF16(2, 2, 2, 2, 2, 2, 2, 2), BF16(2, 2, 2, 2, 2, 2, 2, 2));
}

TUTTI_TEST(einsum_of_one_operand)
{
    BECOMES("ij->ji", "return transpose(p0){order=[1,0]}", F32(3, 4));
    BECOMES("ij->", "return sum(p0){axes=[0,1]}", F32(3, 4));
    BECOMES("ijk->ki", "return transpose(sum(p0){axes=[1]}){order=[1,0]}", F32(3, 4, 5));
    BECOMES("ij->ij", "return p0", F32(3, 4));
    BECOMES("ij->ji", "return reshape(p0){dims=[4,1]}", F32(1, 4));
}

TUTTI_TEST(einsum_element_by_element)
{
    BECOMES("i,j->ij", "return mul(reshape(p0){dims=[4,1]}, p1)", F32(4), F32(3));
    BECOMES("ij,j->ij", "return mul(p0, p1)", F32(4, 3), F32(3));
    BECOMES("ij,ij->ji", "return transpose(mul(p0, p1)){order=[1,0]}", F32(4, 3), F32(4, 3));
    BECOMES(",ij->ij", "return mul(p0, p1)", F32(), F32(3, 4));
    BECOMES("i,i->", "return sum(mul(p0, p1)){axes=[0]}", F32(4), F32(4));
    BECOMES("bi,bi->b", "return sum(mul(p0, p1)){axes=[1]}", F32(2, 4), F32(2, 4));
}

/* Labels that one operand alone has; 16 bits are rounded once. */
TUTTI_TEST(einsum_sums_first)
{
    BECOMES("ijk,kl->jl", "return matmul(sum(p0){axes=[0]}, p1)", F32(4, 3, 2), F32(2, 5));
    BECOMES("ij,k->k", "return mul(sum(p0){axes=[0,1]}, p1)", F32(4, 3), F32(3));
    BECOMES("ijk,kl->jl",
            "return cast(matmul(sum(cast(p0){dtype=f32}){axes=[0]}, cast(p1){dtype=f32}))"
            "{dtype=bf16}",
            BF16(2, 3, 4), BF16(4, 5));
    BECOMES("ij->i", "return sum(p0){axes=[1]}", BF16(2, 3));
}

/* Axes of "..." with 1 element are as if they were not there. */
TUTTI_TEST(einsum_broadcasts)
{
    BECOMES("...ij,jk->...ik", "return reshape(matmul(reshape(p0){dims=[6,4]}, p1)){dims=[2,3,5]}",
            F32(2, 3, 4), F32(4, 5));
    BECOMES("...i,...i->...", "return reshape(matmul(p1, p0){transpose_b=true}){dims=[3]}",
            F32(3, 4), F32(1, 4));
    BECOMES("...ij,...jk->...ik", "return matmul(p0, p1)", F32(5, 2, 3), F32(5, 3, 4));
}

/* Those first that sum and are cheap; no outer product of the first two. */
TUTTI_TEST(einsum_of_many_operands)
{
    BECOMES("ij,jk,kl->il", "return matmul(matmul(p0, p1), p2)", F32(3, 4), F32(4, 5), F32(5, 6));
    BECOMES("ij,jk,k->i",
            "return reshape(matmul(matmul(reshape(p2){dims=[1,5]}, p1){transpose_b=true}, p0)"
            "{transpose_b=true}){dims=[3]}",
            F32(3, 4), F32(4, 5), F32(5));
    BECOMES("il,jk,kl->ij", "return matmul(matmul(p0, p2){transpose_b=true}, p1){transpose_b=true}",
            F32(3, 6), F32(4, 5), F32(5, 6));
    BECOMES("bij,bjk,bj->bik", "return matmul(p0, mul(p1, reshape(p2){dims=[3,4,1]}))",
            F32(3, 6, 4), F32(3, 4, 5), F32(3, 4));
}

static int count_of(const tutti_graph *g, const char *op)
{
    int count = 0;
    for (size_t n = 0; n < g->nodes.count; n++)
        count += tutti__is(g->nodes.data[n], op);
    return count;
}

/* Weights that are constants stay constants, in whatever order they are wanted. */
TUTTI_TEST(einsum_turns_constants_once)
{
    tutti_graph *g = tutti__test_graph();
    tutti_tensor *values;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 3, (int64_t[]){4, 3, 5}, &values));
    for (int i = 0; i < 60; i++)
        tutti_tensor_set(values, i, i % 16);
    tutti_sym x = tutti__test_input(g, 0, F32(2, 3, 4)), w = tutti_constant(g, values);
    tutti__test_result(tutti_einsum("bij,jil->bl", x, w));
    tutti__test_result(tutti_einsum("bij,jkl->blik", x, w));
    tutti__test_pass(&tutti_pass_einsum, tutti__test_on_cpu(), g, NULL, NULL);
    CHECK_INT(count_of(g, "matmul"), 2);
    CHECK_INT(count_of(g, "constant"), 2);
    CHECK_INT(count_of(g, "transpose"), 1); /* of the second result */
    tutti_tensor_release(values);
    tutti_graph_destroy(g);
}

/* Whoever has one row of the batch or many: the same product, the same order of sums. */
TUTTI_TEST(einsum_deterministic)
{
    BECOMES_DETERMINISTIC("bi,bi->b",
                          "return reshape(matmul(reshape(p0){dims=[2,1,4]}, "
                          "reshape(p1){dims=[2,4,1]})){dims=[2]}",
                          F32(2, 4), F32(2, 4));
    BECOMES_DETERMINISTIC("bi,bi->b",
                          "return reshape(matmul(p0, reshape(p1){dims=[4,1]})){dims=[1]}",
                          F32(1, 4), F32(1, 4));
    BECOMES_DETERMINISTIC("ij,jb->bi", "return transpose(matmul(p0, p1)){order=[1,0]}", F32(2, 3),
                          F32(3, 4));
    BECOMES_DETERMINISTIC("bij->bj", "return sum(p0){axes=[1]}", F32(1, 3, 4));
    /* The sum goes in the first operand's order, whichever is smaller. */
    BECOMES_DETERMINISTIC("bij,jil->bl",
                          "return matmul(reshape(p0){dims=[2,12]}, "
                          "reshape(transpose(p1){order=[1,0,2]}){dims=[12,5]})",
                          F32(2, 3, 4), F32(4, 3, 5));
}

TUTTI_TEST(einsum_stays)
{
    STAYS("ii->i", "return einsum(p0){equation=\"ii->i\"}", F32(3, 3));
    STAYS("i->ii", "return einsum(p0){equation=\"i->ii\"}", F32(3));
    STAYS("iij,jk->k", "return einsum(p0, p1){equation=\"iij,jk->k\"}", F32(3, 3, 2), F32(2, 4));
    STAYS("ij,jk->ik", "return einsum(p0, p1){equation=\"ij,jk->ik\"}", F32(2, 0), F32(0, 3));
    STAYS("ij,jk->ik", "return einsum(p0, p1){equation=\"ij,jk->ik\"}", TUTTI_TYPE(TUTTI_I32, 2, 3),
          TUTTI_TYPE(TUTTI_I32, 3, 4));
    /* The first product would have 9 axes. */
    STAYS("abcdz,efghjz,hjai->abcdefgi",
          "return einsum(p0, p1, p2){equation=\"abcdz,efghjz,hjai->abcdefgi\"}", F32(1, 2, 1, 1, 2),
          F32(1, 1, 1, 2, 2, 2), F32(2, 2, 1, 64));
    becomes_on(tutti__test_on_whole(), "ij,jk->ik", TYPES(F32(2, 3), F32(3, 4)),
               "return einsum(p0, p1){equation=\"ij,jk->ik\"}");
}

/* ---- values ---- */

enum { MOST_OPERANDS = 4, MOST_LABELS = 4 };

typedef struct equation {
    char text[64];
    int count;
    tutti_type types[MOST_OPERANDS];
} equation;

/* Some of the labels of a text, each once, in any order. */
static void draw_labels(tutti_random_key key, uint64_t *at, const char *from, int most, char *to)
{
    char left[16];
    size_t count = strlen(from), used = 0, wanted;
    strcpy(left, from);
    wanted = (size_t)tutti__random_below(key, (*at)++, count + 1);
    wanted = wanted > (size_t)most ? (size_t)most : wanted;
    for (; used < wanted; used++) {
        size_t pick = (size_t)tutti__random_below(key, (*at)++, count - used);
        to[used] = left[pick];
        memmove(left + pick, left + pick + 1, count - used - pick);
    }
    to[used] = '\0';
}

static equation draw_equation(tutti_random_key key, tutti_dtype dtype)
{
    static const int64_t sizes[] = {3, 2, 5, 1, 4, 7};
    equation e = {.count = 1 + (int)tutti__random_below(key, 0, MOST_OPERANDS)};
    char term[16], all[16] = "";
    uint64_t at = 1;
    for (int i = 0; i < e.count; i++) {
        int64_t dims[MOST_LABELS] = {0};
        draw_labels(key, &at, "abcdef", MOST_LABELS, term);
        strcat(e.text, i > 0 ? "," : "");
        strcat(e.text, term);
        for (size_t j = 0; term[j] != '\0'; j++) {
            dims[j] = sizes[term[j] - 'a'];
            if (strchr(all, term[j]) == NULL)
                all[strlen(all)] = term[j];
        }
        e.types[i] = tutti_type_make(dtype, (int)strlen(term), dims);
    }
    draw_labels(key, &at, all, 6, term);
    strcat(e.text, "->");
    strcat(e.text, term);
    return e;
}

static tutti_tensor *draw_tensor(tutti_random_key key, const tutti_type *type)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(type->dtype, type->rank, type->dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, (double)tutti__random_below(key, (uint64_t)i, 2001) / 1e3 - 1);
    return tensor;
}

/* Fetches by the reference kernels and through a session. */
static void compare(tutti_graph *g, const char *what, bool is_deterministic, int count,
                    const tutti_sym *fed, tutti_tensor *const *values, const tutti_sym *fetched)
{
    tutti_reference_feed reference_feeds[MOST_OPERANDS];
    tutti_feed feeds[MOST_OPERANDS];
    tutti_fetch fetches[MOST_OPERANDS + 1];
    tutti_edge edges[MOST_OPERANDS + 1];
    tutti_tensor *expected[MOST_OPERANDS + 1], *actual[MOST_OPERANDS + 1];
    tutti_session *session;
    for (int i = 0; i < count; i++) {
        reference_feeds[i] = (tutti_reference_feed){tutti__edge(fed[i]), values[i]};
        feeds[i] = (tutti_feed){fed[i], values[i]};
    }
    for (int i = 0; i <= count; i++) {
        edges[i] = tutti__edge(fetched[i]);
        fetches[i] = (tutti_fetch){fetched[i], &actual[i]};
    }
    CHECK_OK(tutti_graph_check(g));
    CHECK_OK(tutti__reference_run(g, count, reference_feeds, count + 1, edges, expected));
    CHECK_OK(tutti_session_open(&session, g, .deterministic = is_deterministic));
    CHECK_OK(tutti_run(session, .feed = {count, feeds}, .fetch = {count + 1, fetches}));
    for (int i = 0; i <= count; i++) {
        bool narrow = tutti_dtype_size(tutti_tensor_dtype(expected[i])) == 2;
        CHECK_OK(tutti__tensor_near(actual[i], expected[i], narrow ? 0.05 : 1e-4, what));
        tutti_tensor_release(expected[i]);
        tutti_tensor_release(actual[i]);
    }
    tutti_session_close(session);
}

/* The result of an einsum, and the gradients of a weighted sum of it. */
static void check_equation(const equation *e, bool is_deterministic)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym operands[MOST_OPERANDS], fetched[MOST_OPERANDS + 1];
    tutti_tensor *values[MOST_OPERANDS];
    for (int i = 0; i < e->count; i++) {
        operands[i] = (tutti_placeholder)(g, e->types[i]);
        values[i] = draw_tensor((tutti_random_key){7, (uint64_t)i}, &e->types[i]);
    }
    fetched[0] = (tutti_einsum)(e->text, e->count, operands);
    tutti_sym weights = tutti_stop_gradient(tutti_sin(fetched[0]));
    tutti_sym loss = tutti_sum(tutti_mul(fetched[0], weights));
    for (int i = 0; i < e->count; i++)
        fetched[i + 1] = tutti_gradient(loss, operands[i]);
    compare(g, e->text, is_deterministic, e->count, operands, values, fetched);
    for (int i = 0; i < e->count; i++)
        tutti_tensor_release(values[i]);
    tutti_graph_destroy(g);
}

TUTTI_TEST(einsum_random_equations)
{
    for (uint64_t i = 0; i < 150; i++) {
        equation e = draw_equation((tutti_random_key){i, 3}, TUTTI_F32);
        check_equation(&e, i % 3 == 0);
    }
}

TUTTI_TEST(einsum_random_equations_of_other_types)
{
    static const tutti_dtype dtypes[] = {TUTTI_BF16, TUTTI_F16, TUTTI_F64};
    for (uint64_t i = 0; i < 60; i++) {
        equation e = draw_equation((tutti_random_key){i, 5}, dtypes[i % 3]);
        check_equation(&e, false);
    }
}

TUTTI_TEST(einsum_chosen_equations)
{
    const equation equations[] = {
        {"...ij,...jk->...ik", 2, {F32(4, 1, 2, 3), F32(5, 3, 4)}},
        {"...ij,...jk->ik...", 2, {F32(2, 4, 2, 3), F32(1, 4, 3, 4)}},
        {"...i,...i", 2, {F32(3, 4), F32(1, 4)}},
        {"...i,...i->", 2, {F32(1, 4), F32(3, 4)}},
        {"i...,...j,...->ij", 3, {F32(2, 3, 1), F32(1, 5, 4), F32(5)}},
        {"ij,jk->ik", 2, {F32(70, 300), F32(300, 65)}},
        {"bqhd,bkhd->bhqk", 2, {F32(2, 33, 3, 16), F32(2, 21, 3, 16)}},
        {"abcdef,efghij,j->abcdghi", 3, {F32(2, 3, 1, 2, 3, 2), F32(3, 2, 2, 2, 1, 4), F32(4)}},
        {"abcdef,efghij,hc->abdgij", 3, {F32(2, 3, 2, 2, 3, 2), F32(3, 2, 2, 2, 2, 3), F32(2, 2)}},
        {"bi,oij,bj->bo", 3, {F32(9, 17), F32(5, 17, 11), F32(9, 11)}},
    };
    for (size_t i = 0; i < TUTTI_COUNT(equations); i++) {
        check_equation(&equations[i], false);
        check_equation(&equations[i], true);
    }
}
