/* named.c: see named.h. Room doubles at powers of two. */
#include "io/named.h"

#include <stdlib.h>
#include <string.h>

tutti_status tutti__named_add(tutti_named_tensors *list, const char *name, size_t name_size,
                              tutti_tensor *tensor)
{
    char *copy = malloc(name_size + 1);
    bool full = (list->count & (list->count - 1)) == 0; /* 0, 1, 2, 4, … */
    size_t room = list->count == 0 ? 1 : 2 * list->count;
    tutti_named_tensor *items = copy == NULL ? NULL
                                : full       ? realloc(list->items, room * sizeof *items)
                                             : list->items;
    if (items == NULL) {
        free(copy);
        tutti_tensor_release(tensor);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for tensor '%.*s'",
                          (int)(name_size < 200 ? name_size : 200), name);
    }
    memcpy(copy, name, name_size);
    copy[name_size] = '\0';
    list->items = items;
    items[list->count++] = (tutti_named_tensor){.name = copy, .tensor = tensor};
    return TUTTI_OK;
}

void tutti_named_tensors_clear(tutti_named_tensors *list)
{
    if (list == NULL)
        return;
    for (size_t i = 0; i < list->count; i++) {
        free((char *)(uintptr_t)list->items[i].name);
        tutti_tensor_release(list->items[i].tensor);
    }
    free(list->items);
    *list = (tutti_named_tensors){0};
}

tutti_tensor *tutti_named_tensors_find(const tutti_named_tensors *list, const char *name)
{
    if (!list || !name)
        return NULL;
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return list->items[i].tensor;
    return NULL;
}
