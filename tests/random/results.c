/* results.c: lists of numbers, made, sent and freed. */
#include "results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void results_free(results *r)
{
    for (int i = 0; i < r->count; i++)
        free(r->list[i].numbers);
    free(r->list);
    *r = (results){0};
}

void results_fail(results *r, tutti_status status, const char *message)
{
    r->status = status;
    snprintf(r->message, sizeof r->message, "%s", message);
}

static result *one_more(results *r)
{
    if (r->count == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 64;
        r->list = realloc(r->list, (size_t)r->capacity * sizeof *r->list);
        if (r->list == NULL)
            abort();
    }
    r->list[r->count] = (result){0};
    return &r->list[r->count++];
}

void results_add(results *r, const tutti_tensor *tensor, const char *format, ...)
{
    result *one = one_more(r);
    va_list args;
    va_start(args, format);
    vsnprintf(one->name, sizeof one->name, format, args);
    va_end(args);
    one->type = *tutti_tensor_type(tensor);
    one->count = tutti_tensor_count(tensor);
    one->numbers = malloc((size_t)one->count * sizeof(double) + 1);
    if (one->numbers == NULL)
        abort();
    for (int64_t i = 0; i < one->count; i++)
        one->numbers[i] = tutti_tensor_get(tensor, i);
}

static bool send_all(int to, const void *data, size_t size)
{
    for (const char *p = data; size > 0;) {
        ssize_t sent = write(to, p, size);
        if (sent <= 0)
            return false;
        p += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool take_all(int from, void *data, size_t size)
{
    for (char *p = data; size > 0;) {
        ssize_t got = read(from, p, size);
        if (got <= 0)
            return false;
        p += got;
        size -= (size_t)got;
    }
    return true;
}

bool results_write(int to, const results *r)
{
    bool good = send_all(to, r, sizeof *r);
    for (int i = 0; good && i < r->count; i++)
        good = send_all(to, &r->list[i], sizeof r->list[i]) &&
               send_all(to, r->list[i].numbers, (size_t)r->list[i].count * sizeof(double));
    return good;
}

bool results_read(int from, results *ret)
{
    results head = {0};
    if (!take_all(from, &head, sizeof head))
        return false;
    *ret = (results){.status = head.status};
    memcpy(ret->message, head.message, sizeof ret->message);
    for (int i = 0; i < head.count; i++) {
        result one = {0};
        if (!take_all(from, &one, sizeof one))
            return false;
        one.numbers = malloc((size_t)one.count * sizeof(double) + 1);
        if (one.numbers == NULL || !take_all(from, one.numbers, (size_t)one.count * sizeof(double)))
            return false;
        *one_more(ret) = one;
    }
    return true;
}
