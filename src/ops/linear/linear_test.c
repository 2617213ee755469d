/* linear_test.c: products by hand: values, messages, gradients of shared matrices. */
#include "ops/network/network_test.h"

TUTTI_TEST(matmul_in_all_transpositions)
{
    CHECK_OP("matmul", "f32[2,2]{=1,2,3,4} f32[2,2]{=5,6,7,8}", 0, 19, 22, 43, 50);
    CHECK_OP("matmul", "f32[2,2]{=1,2,3,4} f32[2,2]{=5,6,7,8} | transpose_a=true", 0, 26, 30, 38,
             44);
    CHECK_OP("matmul", "f32[2,2]{=1,2,3,4} f32[2,2]{=5,6,7,8} | transpose_b=true", 0, 17, 23, 39,
             53);
    CHECK_OP("matmul", "f32[2,2]{=1,2,3,4} f32[2,2]{=5,6,7,8} | transpose_a=true transpose_b=true",
             0, 23, 31, 34, 46);
    CHECK_OP("matmul", "i32[2,1,1,2]{=1,2,3,4} i32[2,2,1]{=1,1,2,3}", 0, 3, 8, 7, 18);
    CHECK_OP("matmul", "f32[1,3]{=16777216,1,1} f32[3,1]{=1}", 0, 16777218);
    CHECK_OP("matmul", "i8[1,2]{=100,100} i8[2,1]{=1}", 0, -56);
    CHECK_OP("matmul", "f32[2,0] f32[0,1]", 0, 0, 0);
}

TUTTI_TEST(matmul_refuses)
{
    CHECK_REFUSES("matmul", "f32[2,3] f32[4,5]", TUTTI_INVALID,
                  "columns of the first (3) must be rows of the second (4)");
    CHECK_REFUSES("matmul", "f32[3] f32[3,2]", TUTTI_INVALID, "tutti_expand_dims");
    CHECK_REFUSES("matmul", "f32[2,3] f64[3,2]", TUTTI_INVALID, "element types must agree");
    CHECK_REFUSES("matmul", "f32[2,2,3] f32[3,3,2]", TUTTI_INVALID, "do not broadcast");
    CHECK_REFUSES("matmul", "bool[2,2] bool[2,2]", TUTTI_INVALID, "floats or integers");
    CHECK_REFUSES("matmul", "f32[4611686018427387904,0] f32[0,8]", TUTTI_TOO_LARGE, "overflows");
    CHECK_REFUSES("outer", "f32[2,1] f32[2]", TUTTI_INVALID, "both need 1 dimension");
    CHECK_REFUSES("transpose", "f32[2,3] | order=[0]", TUTTI_INVALID, "name each axis once");
    CHECK_REFUSES("transpose", "f32[2,3] | order=[0,0]", TUTTI_INVALID, "named twice");
}

/* x [batch, time, features] times a matrix: the matrix's gradient is one product, not a sum of
 * many. */
TUTTI_TEST(matmul_of_a_batch_with_one_matrix)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, TUTTI_ANY, 4),
              w = tutti_fill(g, TUTTI_F32, 1, 4, 3);
    tutti_sym y = tutti_matmul(x, w), grad = tutti_gradient(tutti_sum(y), w);
    CHECK_OK(tutti_graph_check(g));
    CHECK_INT(tutti_sym_type(y).dims[2], 3);
    CHECK_STR(tutti_node_op(grad.node), "matmul");
    CHECK_INT(tutti_sym_type(grad).rank, 2);
    tutti_graph_destroy(g);
}

TUTTI_TEST(einsum_reads_equations)
{
    CHECK_OP("einsum", "f32[2,2]{=1,2,3,4} f32[2,2]{=5,6,7,8} | equation=ij,jk->ik", 0, 19, 22, 43,
             50);
    CHECK_OP("einsum", "f32[2,2]{=1,2,3,4} f32[2,2]{=5,6,7,8} | equation=ij,jk", 0, 19, 22, 43, 50);
    CHECK_OP("einsum", "f32[2,2]{=1,2,3,4} | equation=ba", 0, 1, 3, 2,
             4); /* result ab: transposed */
    CHECK_OP("einsum", "f32[2,2]{=1,2,3,4} | equation=ii", 0, 5);
    CHECK_OP("einsum", "f32[2,2]{=1,2,3,4} | equation=ii->i", 0, 1, 4);
    CHECK_OP("einsum", "f32[2]{=1,2} | equation=i->ii", 0, 1, 0, 0, 2);
    CHECK_OP("einsum", "f32[2,2]{=1,2,3,4} | equation=ij->", 0, 10);
    CHECK_OP("einsum", "f32[2]{=1,2} f32[2]{=3,4} | equation=i,j->ij", 0, 3, 4, 6, 8);
    CHECK_OP("einsum", "f32[2,1,2]{=1,2,3,4} f32[3]{=1,10,100} | equation=\"i...j , ... -> i...\"",
             0, 3, 30, 300, 7, 70, 700);
    CHECK_OP("einsum", "f32[2,2]{=1,2,3,4} | equation=...->", 0, 10);
    CHECK_OP("einsum", "i64[2]{=3000000000,1} i64[2]{=3000000001,0} | equation=i,i->", 0,
             9.000000003e18);
    CHECK_OP("einsum", "f32[] f32[0] | equation=,i->", 0, 0);
}

TUTTI_TEST(einsum_refuses)
{
    CHECK_REFUSES("einsum", "f32[2,3] f32[4,5] | equation=ij,jk->ik", TUTTI_INVALID,
                  "label 'j' has size 4 in operand 1 (f32[4,5]), but 3 before it");
    CHECK_REFUSES("einsum", "f32[2,3] | equation=ii->i", TUTTI_INVALID, "label 'i' has size 3");
    CHECK_REFUSES("einsum", "f32[2,3] | equation=ij->k", TUTTI_INVALID,
                  "label 'k' in the result but in no");
    CHECK_REFUSES("einsum", "f32[2,3] | equation=i->i", TUTTI_INVALID, "'...' stands for");
    CHECK_REFUSES("einsum", "f32[2] | equation=ij->i", TUTTI_INVALID, "gives operand 0 2 labels");
    CHECK_REFUSES("einsum", "f32[2] | equation=i,i->i", TUTTI_INVALID,
                  "does not fit its 1 operands");
    CHECK_REFUSES("einsum", "f32[2] f32[2] | equation=i->i", TUTTI_INVALID,
                  "1 terms for 2 operands");
    CHECK_REFUSES("einsum", "f32[2] | equation=i*->i", TUTTI_INVALID, "holds '*' at position 1");
    CHECK_REFUSES("einsum", "f32[2] | equation=i->i->i", TUTTI_INVALID, "goes on after its result");
    CHECK_REFUSES("einsum", "f32[2] | equation=i->iiiiiiiii", TUTTI_INVALID, "more than 8 labels");
    CHECK_REFUSES("einsum", "f32[2,2] f32[3] | equation=i...,...->i", TUTTI_INVALID, "has size 3");
    CHECK_REFUSES("einsum", "f32[2] i32[2] | equation=i,i->", TUTTI_INVALID,
                  "element types must agree");
}

/* Labels that the result drops come back through ones; broadcast axes are summed. */
TUTTI_TEST(einsum_gradients)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WAVE(g, 0, 2, 3), v = WAVE(g, 1, 3);
    tutti_sym y = tutti_einsum("ij,k->k", x, v), dx = tutti_gradient(tutti_sum(y), x);
    tutti_tensor *sum = tutti__test_value(tutti_sum(v));
    double s = tutti_tensor_get(sum, 0);
    CHECK_SYM(dx, s, s, s, s, s, s);
    tutti_tensor_release(sum);
    tutti_sym b = tutti_fill(g, TUTTI_F64, 2, 1, 3), z = tutti_einsum("...i,...i->...", x, b);
    tutti_sym db = tutti_gradient(tutti_sum(z), b);
    CHECK_INT(tutti_sym_type(db).dims[0], 1);
    tutti_sym columns = tutti_sum(x, .axes = TUTTI_AXES(0));
    CHECK_SYM(tutti_sub(db, columns), 0, 0, 0);
    tutti_sym dy = tutti_gradient(tutti_einsum("...i,...i->", x, b), x); /* summed: [2, 3] */
    CHECK_SYM(dy, 2, 2, 2, 2, 2, 2);
    CHECK_OK(tutti_graph_check(g));
    tutti_graph_destroy(g);
}

TUTTI_TEST(transpose_reverses_without_an_order)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WAVE(g, 0, 2, 3, 4);
    CHECK_INT(tutti_sym_type(tutti_transpose(x)).dims[0], 4);
    tutti_type type = tutti_sym_type(tutti_transpose(x, 1, 2, 0));
    CHECK_INT(type.dims[0], 3);
    CHECK_INT(type.dims[2], 2);
    CHECK_OK(tutti_graph_check(g));
    tutti_graph_destroy(g);
    CHECK_OP("transpose", "f32[2,3]{=1,2,3,4,5,6}", 0, 1, 4, 2, 5, 3, 6);
    CHECK_OP("outer", "f32[2]{=1,2} f32[2]{=3,4}", 0, 3, 4, 6, 8);
}
