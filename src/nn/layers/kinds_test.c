/* kinds_test.c: what every kind of layer keeps to. */
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "nn/model/layer.h"
#include "tables/layer_kind.h"
#include "tutti/tutti.h"

static size_t field_size(const tutti_field *field)
{
    switch (field->kind) {
    case TUTTI_FIELD_INT:
        return sizeof(int64_t);
    case TUTTI_FIELD_NUMBER:
        return sizeof(double);
    case TUTTI_FIELD_FLAG:
        return sizeof(bool);
    case TUTTI_FIELD_TEXT:
    case TUTTI_FIELD_CODE:
        return sizeof(void *);
    case TUTTI_FIELD_INTS:
        return sizeof(int64_t) * (size_t)field->count;
    }
    return 0;
}

/* Marks the bytes of a field; none is marked twice. */
static void mark(char *bytes, size_t size, const tutti_field *field)
{
    CHECK(field->offset + field_size(field) <= size);
    for (size_t i = 0; i < field_size(field); i++) {
        CHECK(!bytes[field->offset + i]);
        bytes[field->offset + i] = 1;
    }
}

/* Every aligned word behind what all settings begin with belongs to a field, or at least its first
 * byte does: what the compiler puts between members is less than a word. */
TUTTI_TEST(layer_kinds_list_all_their_settings)
{
    size_t begin = offsetof(tutti_layer_settings, device) + sizeof(char *);
    for (const tutti_layer_kind *const *at = tutti__layer_kind_table; *at; at++) {
        const tutti_layer_kind *kind = *at;
        size_t size = kind->settings_size ? kind->settings_size : sizeof(tutti_layer_settings);
        char *bytes = calloc(1, size);
        memset(bytes, 1, begin);
        for (const tutti_field *field = kind->fields; field && field->key; field++)
            mark(bytes, size, field);
        for (size_t i = 0; i + 8 <= size; i += 8)
            if (!memchr(bytes + i, 1, 8))
                tutti__test_fail(__FILE__, __LINE__, "%s: byte %zu of its settings is no field",
                                 kind->name, i);
        free(bytes);
    }
}

TUTTI_TEST(layer_kinds_have_a_line_of_documentation)
{
    for (const tutti_layer_kind *const *at = tutti__layer_kind_table; *at; at++) {
        const tutti_layer_kind *kind = *at;
        CHECK(kind->doc != NULL);
        CHECK(strncmp(kind->doc, kind->name, strlen(kind->name)) == 0);
        CHECK(kind->doc[strlen(kind->name)] == '(');
        CHECK(strchr(kind->doc, '\n') == NULL);
        CHECK(kind->call != NULL);
        CHECK(tutti_layer_find(kind->name) == kind);
    }
}

/* A value for each field by its place, into settings and out of the layer's copy. */
static void put(const tutti_field *field, char *settings, int number)
{
    void *at = settings + field->offset;
    for (int i = 0;
         i < field->count && (field->kind == TUTTI_FIELD_INT || field->kind == TUTTI_FIELD_INTS);
         i++)
        ((int64_t *)at)[i] = number + i;
    if (field->kind == TUTTI_FIELD_NUMBER)
        *(double *)at = number;
    if (field->kind == TUTTI_FIELD_FLAG)
        *(bool *)at = true;
    if (field->kind == TUTTI_FIELD_TEXT || field->kind == TUTTI_FIELD_CODE)
        *(const char **)at = "some text";
}

TUTTI_TEST(layers_copy_their_settings_through_the_fields)
{
    for (const tutti_layer_kind *const *at = tutti__layer_kind_table; *at; at++) {
        const tutti_layer_kind *kind = *at;
        size_t size = kind->settings_size ? kind->settings_size : sizeof(tutti_layer_settings);
        char *settings = calloc(1, size);
        int number = 0;
        memcpy(settings, &size, sizeof size);
        for (const tutti_field *field = kind->fields; field && field->key; field++)
            put(field, settings, ++number);
        tutti_layer *layer = tutti_layer_make(kind->name, settings);
        CHECK(layer != NULL && layer->error.status == TUTTI_OK);
        for (const tutti_field *field = kind->fields; field && field->key; field++) {
            void *copy = (char *)layer->settings + field->offset;
            void *arg = settings + field->offset;
            if (field->kind != TUTTI_FIELD_TEXT) {
                CHECK(memcmp(copy, arg, field_size(field)) == 0);
                continue;
            }
            CHECK(*(char **)copy != *(char **)arg);
            CHECK_STR(*(char **)copy, "some text");
        }
        tutti_layer_release(layer);
        free(settings);
    }
}
