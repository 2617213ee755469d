/* memory.c: what callbacks remember from epoch to epoch, as text for checkpoints:
 *
 *     [{"callback": "early_stopping", "best": 0.25, "waited": 2}, …]
 *
 * The n-th of a kind gets back what the n-th of that kind remembered. */
#include <stdlib.h>
#include <string.h>

#include "io/json.h"
#include "nn/training/callback.h"

/* Kinds of programs that were built earlier are shorter. */
#define HAS(kind_, member)                                                                         \
    ((kind_)->struct_size >= offsetof(tutti_callback_kind, member) + sizeof((kind_)->member) &&    \
     (kind_)->member)

bool tutti__callback_saves(const tutti_callback *callback)
{
    return HAS(callback->kind, saves);
}

bool tutti__callback_due(const tutti_callback *callback, const tutti_event *event)
{
    const tutti_callback_kind *kind = callback->kind;
    return tutti__callback_saves(callback) && kind->batch_end &&
           (!HAS(kind, due) || kind->due(callback->self, event));
}

static const char *name_of(const tutti_callback *callback)
{
    return callback->kind->name ? callback->kind->name : "";
}

static void memory_put(tutti_json_writer *json, const tutti_callback *callback)
{
    tutti_logs memory = {0};
    callback->kind->remember(callback->self, &memory);
    tutti__json_begin(json, '{');
    tutti__json_key(json, "callback");
    tutti__json_put_string(json, name_of(callback));
    for (int i = 0; i < memory.count; i++) {
        tutti__json_key(json, memory.items[i].name);
        tutti__json_put_real(json, memory.items[i].value);
    }
    tutti__json_end(json);
}

tutti_status tutti__fit_remember(const tutti_fit *fit, char **ret_text)
{
    tutti_text text = {0};
    tutti_json_writer json = {.text = &text};
    tutti__json_begin(&json, '[');
    for (size_t i = 0; i < fit->callbacks.count; i++)
        if (HAS(fit->callbacks.data[i]->kind, remember))
            memory_put(&json, fit->callbacks.data[i]);
    tutti__json_end(&json);
    tutti_status status = tutti__json_finish(&json);
    if (status == TUTTI_OK)
        *ret_text = text.data; /* from malloc */
    else
        tutti__text_free(&text);
    return status;
}

/* What the n-th of the kind remembered; NULL when there is none. */
static const tutti_json *memory_find(const tutti_json *root, const char *kind, int n)
{
    for (const tutti_json *each = tutti__json_first(root); each; each = each->next)
        if (strcmp(tutti__json_text(tutti__json_get(each, "callback"), ""), kind) == 0 && n-- == 0)
            return each;
    return NULL;
}

static tutti_status recall(tutti_fit *fit, size_t at, const tutti_json *root)
{
    const tutti_callback *callback = fit->callbacks.data[at];
    tutti_logs memory = {0};
    int before = 0;
    if (!HAS(callback->kind, recall))
        return TUTTI_OK;
    for (size_t i = 0; i < at; i++)
        before += strcmp(name_of(fit->callbacks.data[i]), name_of(callback)) == 0;
    const tutti_json *found = memory_find(root, name_of(callback), before);
    for (const tutti_json *each = tutti__json_first(found); each; each = each->next)
        if (each->kind == TUTTI_JSON_REAL || each->kind == TUTTI_JSON_INT)
            tutti_logs_set(&memory, each->key, tutti__json_real(each, 0));
    tutti_status status =
        found ? callback->kind->recall(callback->self, &fit->event, &memory) : TUTTI_OK;
    return status == TUTTI_OK ? TUTTI_OK
                              : tutti__error_prefix(status, "callback %s", name_of(callback));
}

tutti_status tutti__fit_recall(tutti_fit *fit, const char *text)
{
    tutti_arena arena = {0};
    const tutti_json *root;
    tutti_status status = tutti__json_parse("what a checkpoint remembers of callbacks", text,
                                            strlen(text), NULL, &arena, &root);
    for (size_t i = 0; status == TUTTI_OK && i < fit->callbacks.count; i++)
        status = recall(fit, i, root);
    tutti__arena_free(&arena);
    return status;
}
