/* block_test.c: boxes of values. */
#include "tensor/block.h"

#include "base/test.h"

TUTTI_TEST(block_boxes_are_cut_out_and_put_back)
{
    tutti_type type = {.dtype = TUTTI_I32, .rank = 3, .dims = {3, 4, 5}};
    tutti_tensor *whole, *again;
    CHECK_OK(tutti__tensor_in(tutti__host_memory(), &type, &whole));
    CHECK_OK(tutti__tensor_in(tutti__host_memory(), &type, &again));
    for (int64_t i = 0; i < 60; i++) {
        tutti_tensor_set(whole, i, (double)i);
        tutti_tensor_set(again, i, -1);
    }
    for (int d = 0; d < 3; d++)
        for (int64_t part = 0; part < 2; part++) {
            tutti_box box = tutti__box_whole(&type), all = box;
            tutti_tensor *own;
            box.offset[d] = part * 2;
            box.dims[d] = part ? type.dims[d] - 2 : 2;
            CHECK_OK(tutti__tensor_box(whole, &box, &own));
            CHECK_INT(tutti_tensor_count(own), tutti__box_count(&box, 3));
            tutti__box_copy(tutti_tensor_data(again), &all, tutti_tensor_data(own), &box, &box, 3,
                            sizeof(int32_t));
            tutti_tensor_release(own);
        }
    for (int64_t i = 0; i < 60; i++)
        CHECK_NEAR(tutti_tensor_get(again, i), i, 0);
    tutti_tensor_release(whole);
    tutti_tensor_release(again);
}

TUTTI_TEST(block_boxes_have_something_in_common_or_not)
{
    tutti_box a = {.offset = {0, 2}, .dims = {4, 4}}, b = {.offset = {2, 0}, .dims = {4, 3}}, c;
    char text[TUTTI_BOX_TEXT];
    CHECK(tutti__box_common(&a, &b, 2, &c));
    CHECK_STR(tutti__box_text(&c, 2, text), "[2:4, 2:3]");
    b.offset[1] = 6;
    CHECK(!tutti__box_common(&a, &b, 2, &c));
}
