/* non_max_suppression_test.c: selection of boxes; the cases are those of the operator's description
 * in ONNX. */
#include "ops/network/network_test.h"

#define BOXES "f32[1,6,4]{=0,0,1,1,0,0.1,1,1.1,0,-0.1,1,0.9,0,10,1,11,0,10.1,1,11.1,0,100,1,101}"
#define SCORES "f32[1,1,6]{=0.9,0.75,0.6,0.95,0.5,0.3}"

TUTTI_TEST(non_max_suppression_keeps_the_best_of_boxes_that_overlap)
{
    CHECK_OP("non_max_suppression", BOXES " " SCORES " i64[1]{=3} f32[1]{=0.5} f32[1]{=0}", 0, 0, 0,
             3, 0, 0, 0, 0, 0, 5);
    /* at most so many, from attributes too */
    CHECK_OP("non_max_suppression", BOXES " " SCORES " | max_output=2 iou_threshold=0.5", 0, 0, 0,
             3, 0, 0, 0);
    /* what does not exceed the score goes */
    CHECK_OP("non_max_suppression",
             BOXES " " SCORES " | max_output=3 iou_threshold=0.5 score_threshold=0.4", 0, 0, 0, 3,
             0, 0, 0);
    /* corners in any order */
    CHECK_OP(
        "non_max_suppression",
        "f32[1,6,4]{=1,1,0,0,0,0.1,1,1.1,0,0.9,1,-0.1,0,10,1,11,1,10.1,0,11.1,1,101,0,100} " SCORES
        " | max_output=3 iou_threshold=0.5",
        0, 0, 0, 3, 0, 0, 0, 0, 0, 5);
    /* round their centres */
    CHECK_OP("non_max_suppression",
             "f32[1,6,4]{=0.5,0.5,1,1,0.5,0.6,1,1,0.5,0.4,1,1,0.5,10.5,1,1,0.5,10.6,1,1,0.5,100.5,"
             "1,1} " SCORES " | max_output=3 iou_threshold=0.5 center_point_box=true",
             0, 0, 0, 3, 0, 0, 0, 0, 0, 5);
}

TUTTI_TEST(non_max_suppression_goes_by_image_and_class)
{
    CHECK_OP("non_max_suppression",
             "f32[2,2,4]{=0,0,1,1,0,5,1,6,0,0,1,1,0,0,1,1} f32[2,2,2]{=1,2,4,3,1,2,2,2} | "
             "max_output=2",
             0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0);
    tutti_tensor *none[TUTTI_SPLIT_SLOTS] = {0};
    CHECK_OK(tutti__test_op("non_max_suppression", BOXES " " SCORES, none));
    CHECK_INT(tutti_tensor_dims(none[0])[0], 0);
    CHECK_INT(tutti_tensor_dims(none[0])[1], 3);
    tutti_tensor_release(none[0]);
}

TUTTI_TEST(non_max_suppression_says_what_is_wrong)
{
    CHECK_REFUSES("non_max_suppression", "f32[1,6,5] f32[1,1,6]", TUTTI_INVALID, "the corners");
    CHECK_REFUSES("non_max_suppression", "f32[1,6,4] f32[1,1,5]", TUTTI_INVALID, "number of boxes");
    CHECK_REFUSES("non_max_suppression", "f32[1,6,4] f32[1,1,6] f32[1]", TUTTI_INVALID,
                  "needs one integer");
}

/* Two thirds of each box are shared: of their overlap, 0.5, f32 makes 0.50000006 or 0.49999997. */
TUTTI_TEST(non_max_suppression_rounds_overlaps_as_its_boxes)
{
    CHECK_OP("non_max_suppression",
             "f32[1,2,4]{=0.2,0.2,2.3,0.3,0.9,0.2,3,0.3} f32[1,1,2]{=0.9,0.8} | max_output=2 "
             "iou_threshold=0.5",
             0, 0, 0, 0);
    CHECK_OP("non_max_suppression",
             "f32[1,2,4]{=0.8,0.8,2.3,1.6,1.3,0.8,2.8,1.6} f32[1,1,2]{=0.9,0.8} | max_output=2 "
             "iou_threshold=0.5",
             0, 0, 0, 0, 0, 0, 1);
}
