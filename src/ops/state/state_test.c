/* state_test.c: placeholders, constants, identity; checks on handles and values. */
#include <stdio.h>

#include "ops/state/testing.h"

static const char *type_text_of(tutti_sym sym)
{
    static char text[TUTTI_TYPE_TEXT];
    tutti_type type = tutti_sym_type(sym);
    return tutti_type_text(&type, text);
}

TUTTI_TEST(placeholder_has_the_type_it_was_given)
{
    tutti_graph *g = new_graph();
    CHECK_STR(type_text_of(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 784)), "f32[?,784]");
    CHECK_STR(type_text_of(tutti_placeholder(g, TUTTI_I64)), "i64[]");
    tutti_sym named = tutti_placeholder_named(g, "images", TUTTI_U8, 3);
    CHECK_STR(tutti_node_name(named.node), "images");
    CHECK_OK(tutti_graph_check(g));
    tutti_graph_destroy(g);
}

TUTTI_TEST(placeholder_refuses_nine_dimensions_and_negative_ones)
{
    tutti_graph *g = new_graph();
    CHECK(!tutti_sym_ok(tutti_placeholder(g, TUTTI_F32, 1, 1, 1, 1, 1, 1, 1, 1, 1)));
    check_mistake(g, TUTTI_INVALID, "placeholder 'placeholder' has 9 dimensions, at most 8 exist");
    g = new_graph();
    CHECK(!tutti_sym_ok(tutti_placeholder(g, TUTTI_F32, -7)));
    check_mistake(g, TUTTI_INVALID, "dimension 0 is -7");
    g = new_graph();
    CHECK(!tutti_sym_ok(tutti_placeholder(g, 99, 2)));
    check_mistake(g, TUTTI_INVALID, "attribute 'dtype' is 99, which is no data type");
}

TUTTI_TEST(types_filled_by_hand_are_read_no_further_than_they_reach)
{
    const int ranks[] = {9, 1 << 30, -1};
    for (int i = 0; i < 9; i++) {
        tutti_graph *g = new_graph();
        tutti_type type = {.dtype = TUTTI_F32, .rank = ranks[i / 3]};
        tutti_sym sym = i % 3 == 0   ? (tutti_placeholder)(g, type)
                        : i % 3 == 1 ? (tutti_parameter)(g, 0, type)
                                     : tutti_random_uniform_with(g, 0, 1, type, NULL);
        char part[64];
        snprintf(part, sizeof part, "attribute 'dims' has %d elements", ranks[i / 3]);
        CHECK(!tutti_sym_ok(sym));
        check_mistake(g, TUTTI_INVALID, part);
    }
}

TUTTI_TEST(placeholder_that_is_not_fed_says_so)
{
    tutti_graph *g = new_graph();
    tutti_tensor *value = NULL;
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32);
    CHECK_STATUS(try_fetch(x, 0, NULL, &value), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "placeholder 'x'");
    CHECK_CONTAINS(tutti_error_message(), "among the feeds");
    tutti_graph_destroy(g);
}

TUTTI_TEST(constants_keep_their_values)
{
    tutti_graph *g = new_graph();
    tutti_tensor *two = VECTOR(TUTTI_F64, 1.5, -2), *view = NULL;
    CHECK_OK(tutti_tensor_slice(two, 0, 1, 2, -1, &view));
    tutti_sym reversed = tutti_constant(g, view);
    tutti_tensor_release(two);
    tutti_tensor_release(view);
    tutti_tensor *value = fetch(reversed, 0, NULL);
    CHECK_VALUES(value, 0, -2, 1.5);
    tutti_tensor_release(value);
    CHECK_NEAR(fetch_element(tutti_scalar(g, TUTTI_BF16, 0.5), 0, 0, NULL), 0.5, 0);
    value = fetch(tutti_ints(g, 3, -4), 0, NULL);
    CHECK_VALUES(value, 0, 3, -4);
    tutti_tensor_release(value);
    CHECK_STR(type_text_of(tutti_ints(g)), "i64[0]");
    CHECK(!tutti_sym_ok(tutti_constant(g, NULL)));
    check_mistake(g, TUTTI_INVALID, "the tensor is NULL");
}

TUTTI_TEST(scalars_are_numbers_of_their_type)
{
    tutti_graph *g = new_graph();
    CHECK_NEAR(fetch_element(tutti_scalar(g, TUTTI_U8, 255), 0, 0, NULL), 255, 0);
    CHECK_NEAR(fetch_element(tutti_scalar(g, TUTTI_BOOL, 2), 0, 0, NULL), 1, 0);
    CHECK(!tutti_sym_ok(tutti_scalar(g, TUTTI_U8, 300)));
    check_mistake(g, TUTTI_INVALID, "u8 has no number 300");
}

TUTTI_TEST(stop_gradient_stops_and_identity_does_not)
{
    tutti_graph *g = new_graph();
    tutti_tensor *three = SCALAR(TUTTI_F32, 3);
    tutti_sym x = tutti_placeholder(g, TUTTI_F32);
    tutti_sym y = tutti_mul(tutti_identity(x), tutti_stop_gradient(x));
    CHECK_NEAR(fetch_element(tutti_gradient(y, x), 0, FEEDS(FEED(x, three))), 3, 0);
    tutti_tensor_release(three);
    tutti_graph_destroy(g);
}

TUTTI_TEST(handles_and_values_are_not_mixed_up)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 3);
    CHECK(!tutti_sym_ok(tutti_read(x)));
    check_mistake(g, TUTTI_INVALID, "needs a variable");

    g = new_graph();
    tutti_sym v = tutti_variable(g, tutti_zeros(2, 3), .name = "v");
    CHECK(!tutti_sym_ok(tutti_assign(v, tutti_placeholder(g, TUTTI_F32, 3, 2))));
    check_mistake(g, TUTTI_INVALID, "input 1 is f32[3,2], the variable is f32[2,3]");

    g = new_graph();
    tutti_sym flags = tutti_variable(g, tutti_zeros(2), .dtype = TUTTI_BOOL);
    CHECK(!tutti_sym_ok(tutti_assign_add(flags, tutti_placeholder(g, TUTTI_BOOL, 2))));
    check_mistake(g, TUTTI_INVALID, "only numbers add up");
}
