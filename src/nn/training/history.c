/* history.c: what a training's epochs gave, and named numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/json.h"
#include "nn/training/trainer.h"

struct tutti_history {
    TUTTI_VEC(tutti_logs *) epochs;
    bool diverged;
};

double tutti_logs_get(const tutti_logs *logs, const char *name)
{
    for (int i = 0; logs && i < logs->count; i++)
        if (strcmp(logs->items[i].name, name) == 0)
            return logs->items[i].value;
    return NAN;
}

void tutti_logs_set(tutti_logs *logs, const char *name, double value)
{
    if (!logs || !name)
        return;
    int i = 0;
    while (i < logs->count && strcmp(logs->items[i].name, name) != 0)
        i++;
    if (i == TUTTI_LOGS)
        return;
    logs->items[i].name = name;
    logs->items[i].value = value;
    logs->count = i < logs->count ? logs->count : i + 1;
}

tutti_status tutti__logs_write(const tutti_logs *logs, char **ret_text)
{
    tutti_text text = {0};
    tutti_json_writer json = {.text = &text};
    tutti__json_begin(&json, '{');
    for (int i = 0; i < logs->count; i++) {
        tutti__json_key(&json, logs->items[i].name);
        tutti__json_put_real(&json, logs->items[i].value);
    }
    tutti__json_end(&json);
    tutti_status status = tutti__json_finish(&json);
    if (status == TUTTI_OK)
        *ret_text = text.data; /* from malloc */
    else
        tutti__text_free(&text);
    return status;
}

tutti_status tutti__logs_read(const char *text, tutti_arena *names, tutti_logs *ret)
{
    tutti_arena arena = {0};
    const tutti_json *root;
    tutti_logs logs = {0};
    tutti_status status = tutti__json_parse("the numbers of a checkpoint's epoch", text,
                                            strlen(text), NULL, &arena, &root);
    for (const tutti_json *each = status == TUTTI_OK ? tutti__json_first(root) : NULL; each;
         each = each->next) {
        char *name = each->key ? tutti__arena_string(names, each->key) : NULL;
        if (name)
            tutti_logs_set(&logs, name, tutti__json_real(each, NAN));
    }
    tutti__arena_free(&arena);
    if (status == TUTTI_OK)
        *ret = logs;
    return status;
}

tutti_status tutti__history_begin(tutti_trainer *trainer)
{
    tutti__history_destroy(trainer->history);
    trainer->history = calloc(1, sizeof *trainer->history);
    return trainer->history ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for the history");
}

void tutti__history_destroy(tutti_history *history)
{
    if (!history)
        return;
    for (size_t i = 0; i < history->epochs.count; i++)
        free(history->epochs.data[i]);
    TUTTI_VEC_FREE(&history->epochs);
    free(history);
}

tutti_status tutti__history_add(tutti_history *history, const tutti_logs *logs)
{
    tutti_logs *copy = malloc(sizeof *copy);
    if (!copy || !TUTTI_VEC_PUSH(&history->epochs, copy)) {
        free(copy);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the history");
    }
    *copy = *logs;
    /* cppcheck-suppress memleak ; the history holds it */
    return TUTTI_OK;
}

int tutti_history_epochs(const tutti_history *history)
{
    return history ? (int)history->epochs.count : 0;
}

double tutti_history_get(const tutti_history *history, const char *name, int epoch)
{
    int count = tutti_history_epochs(history);
    epoch = epoch < 0 ? count + epoch : epoch;
    return epoch >= 0 && epoch < count ? tutti_logs_get(history->epochs.data[epoch], name) : NAN;
}

void tutti__history_diverge(tutti_history *history)
{
    history->diverged = true;
}

bool tutti_history_diverged(const tutti_history *history)
{
    return history && history->diverged;
}
