/* json_fuzz.c: a text that is accepted is written and read again as it was. */
#include <string.h>

#include "fuzz.h"
#include "io/json.h"

static void write(const tutti_json *root, tutti_text *text)
{
    tutti_json_writer writer = {.text = text};
    tutti__json_put(&writer, root);
    promise(tutti__json_finish(&writer) == TUTTI_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_arena arena = {0};
    const tutti_json *root, *again;
    tutti_text first = {0}, second = {0};
    if (went_well(tutti__json_parse("input", (const char *)data, size, NULL, &arena, &root))) {
        write(root, &first);
        promise(tutti__json_parse("again", first.data, first.size, NULL, &arena, &again) ==
                TUTTI_OK);
        write(again, &second);
        promise(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    }
    tutti__text_free(&first);
    tutti__text_free(&second);
    tutti__arena_free(&arena);
    return 0;
}
