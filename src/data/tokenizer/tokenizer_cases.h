/* tokenizer_cases.h: what the package tokenizers 0.23.3 gives for hard texts with tests/gpt2's
 * vocabulary: as text like other, and with special tokens where that differs. */
#ifndef TUTTI_DATA_TOKENIZER_CASES_H
#define TUTTI_DATA_TOKENIZER_CASES_H

#include <stdint.h>

typedef struct tokenizer_case {
    const char *text;
    int64_t size;
    int count, special_count;
    const int32_t *ids, *special;
} tokenizer_case;

#define IDS(...)                                                                                   \
    (const int32_t[])                                                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* clang-format off */
static const tokenizer_case cases[] = {
    {"", 0, 0, 0, NULL, NULL},
    {" ", 1, 1, 0, IDS(221), NULL},
    {"Hello world", 11, 7, 0, IDS(40, 371, 321, 282, 272, 76, 68), NULL},
    {"  leading and trailing  ",
     24, 9, 0, IDS(221, 776, 345, 303, 289, 734, 368, 303, 259), NULL},
    {"I'm sure you're right, he's here; we'll see they've gone, don't I'd", 67, 38, 0, IDS(41,
        7, 77, 266, 85, 274, 601, 7, 274, 323, 455, 84, 12, 566, 360, 221, 463, 27, 282, 69, 7,
        718, 460, 69, 548, 7, 407, 328, 283, 69, 12, 335, 283, 7, 84, 533, 7, 68), NULL},
    {"I'M YOU'RE 'sup ''s '", 21, 20, 0, IDS(41, 7, 45, 221, 57, 47, 53, 7, 758, 221, 7, 83,
        85, 80, 221, 7, 7, 83, 221, 7), NULL},
    {"a    b\x09\x09" "c\x0a\x0a\x0a  d   \x0a",
     19, 13, 0, IDS(65, 411, 284, 198, 198, 67, 199, 199, 199, 221, 335, 411, 199), NULL},
    {"1984 was 2026 years 3.14159 x10^-5 \xc2\xbd \xe2\x85\xa7 \xd9\xa3\xd9\xa4", 46, 39, 0,
        IDS(17, 25, 24, 20, 282, 320, 465, 16, 18, 22, 547, 69, 292, 83, 660, 14, 17, 20, 17,
        21, 25, 221, 88, 17, 16, 62, 13, 21, 221, 127, 122, 555, 228, 101, 221, 150, 97, 150,
        98), NULL},
    {"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe3\x83\x86\xe3\x82\xad\xe3\x82\xb9\xe3\x83\x88\xe3\x80\x82\xe6\x97\xa5\xe6\x9c\xac",
     33, 25, 0, IDS(636, 643, 165, 104, 253, 160, 224, 107, 160, 226, 229, 160, 225, 256, 160,
        225, 118, 160, 226, 231, 160, 223, 225, 636, 643), NULL},
    {"\xc3\xbc" "ber stra\xc3\x9f" "e caf\xc3\xa9 na\xc3\xafve \xef\xac\x81n", 31, 24, 0,
        IDS(128, 121, 66, 260, 308, 277, 128, 254, 69, 280, 65, 70, 128, 103, 291, 65, 128,
        108, 407, 221, 172, 106, 224, 78), NULL},
    {"\xd0\xbf\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82, \xd0\xbc\xd0\xb8\xd1\x80!", 21, 9, 0,
        IDS(141, 634, 647, 12, 527, 121, 525, 526, 1), NULL},
    {"\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7\xe2\x80\x8d\xf0\x9f\x91\xa6\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa",
     49, 37, 0, IDS(464, 639, 464, 639, 464, 240, 236, 464, 238, 122, 464, 240, 102, 159, 223,
        236, 464, 240, 103, 159, 223, 236, 464, 240, 101, 159, 223, 236, 464, 240, 100, 464,
        230, 103, 464, 230, 104), NULL},
    {"x = 10; if (x) { return 42; }", 29, 15, 0, IDS(88, 307, 681, 27, 719, 324, 88, 9, 615,
        720, 600, 18, 27, 221, 93), NULL},
    {"\xc2\xa0\xe2\x80\x83\xe3\x80\x80 wide\xc2\xa0 spaces \xe2\x80\xa8" "end", 29, 22, 0,
        IDS(127, 255, 159, 223, 226, 160, 223, 223, 282, 421, 127, 255, 266, 80, 319, 265, 221,
        159, 223, 102, 69, 273), NULL},
    {"\x0d\x0a\x0d\x0a\x00\x01\x7f", 7, 7, 0, IDS(202, 199, 202, 199, 189, 190, 222), NULL},
    {"e\xcc\x81 combining a\xcc\x88", 17, 10, 0, IDS(69, 137, 224, 385, 66, 261, 303, 258, 137,
        231), NULL},
    {"<|endoftext|>", 13, 10, 1, IDS(28, 92, 69, 273, 79, 70, 84, 710, 92, 30), IDS(0)},
    {"before<|endoftext|>after", 24, 16, 7, IDS(66, 69, 580, 28, 92, 69, 273, 79, 70, 84, 710,
        92, 30, 65, 70, 658), IDS(66, 69, 580, 0, 65, 70, 658)},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 68, 68, 0, IDS(65,
        65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65,
        65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65,
        65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65,
        65), NULL},
    {"The cat that killed the rat that ate the malt", 45, 18, 0, IDS(759, 280, 267, 348, 361,
        368, 294, 68, 268, 323, 267, 348, 530, 69, 268, 286, 293, 84), NULL},
    {"\xe2\x80\x8b\xe2\x80\x8d\xef\xbb\xbfzero width", 19, 15, 0, IDS(159, 223, 234, 159, 223,
        236, 172, 120, 124, 90, 260, 79, 282, 535, 439), NULL},
    {"\xef\xb7\xba \xf0\x90\xb5\x80\xf0\x90\xb5\x8a \xf0\x9d\x9f\x98 \xf0\xa0\xae\xb7\xe9\x87\x8e\xe5\xae\xb6",
     28, 28, 0, IDS(172, 116, 119, 221, 173, 239, 114, 223, 173, 239, 114, 233, 221, 173, 252,
        254, 247, 221, 173, 255, 107, 116, 166, 230, 237, 162, 107, 115), NULL},
    {"!!!???...'s ...'t can't've", 26, 21, 0, IDS(1, 1, 1, 31, 31, 31, 14, 14, 14, 7, 83, 342,
        14, 14, 7, 84, 665, 7, 84, 7, 407), NULL},
    {"a\xc2\x85" "b \xc2\x85 c", 9, 8, 0, IDS(65, 127, 228, 66, 221, 127, 228, 280), NULL},
    {"tab\x09space \x09 mix\x09 \x09" "end\x09", 22, 17, 0, IDS(84, 450, 198, 582, 319, 69,
        221, 198, 286, 73, 88, 198, 221, 198, 69, 273, 198), NULL},
};
/* clang-format on */

#endif
