/* device_name.c: TensorFlow-style device names: /job:ps/replica:0/task:1/device:GPU:0, /cpu:0,
 * far:1; and logical devices, gpu:0/1. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

static bool word(const char *text, size_t size)
{
    if (size == 0 || !isalpha((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return false;
    return true;
}

static bool number(const char *text, size_t size, int *ret)
{
    if (size == 0 || size > 6)
        return false;
    int value = 0;
    for (size_t i = 0; i < size; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
        value = value * 10 + (text[i] - '0');
    }
    *ret = value;
    return true;
}

/* A kind is no word that begins another part: its text could not be read again. */
static bool is_key(const char *kind)
{
    static const char *const keys[] = {"job", "replica", "task", "device"};
    for (size_t i = 0; i < TUTTI_COUNT(keys); i++)
        if (strcmp(kind, keys[i]) == 0)
            return true;
    return false;
}

/* "GPU:0" or "cpu:*" or "far" */
static bool device_part(const char *text, size_t size, tutti_device_name *name)
{
    const char *colon = memchr(text, ':', size);
    size_t kind = colon ? (size_t)(colon - text) : size;
    if (!word(text, kind) || kind >= sizeof name->kind)
        return false;
    for (size_t i = 0; i < kind; i++)
        name->kind[i] = (char)tolower((unsigned char)text[i]);
    name->kind[kind] = 0;
    name->index = -1;
    if (is_key(name->kind))
        return false;
    if (!colon || (size - kind == 2 && colon[1] == '*'))
        return true;
    return number(colon + 1, size - kind - 1, &name->index);
}

/* One part between slashes. */
static bool part(const char *text, size_t size, tutti_device_name *name)
{
    const char *colon = memchr(text, ':', size);
    size_t key = colon ? (size_t)(colon - text) : size;
    size_t rest = colon ? size - key - 1 : 0;
    if (key == 3 && strncmp(text, "job", 3) == 0) {
        if (!colon || !word(colon + 1, rest) || rest >= sizeof name->job || name->job[0])
            return false;
        memcpy(name->job, colon + 1, rest);
        name->job[rest] = 0;
        return true;
    }
    if (key == 7 && strncmp(text, "replica", 7) == 0)
        return name->replica < 0 && colon && number(colon + 1, rest, &name->replica);
    if (key == 4 && strncmp(text, "task", 4) == 0)
        return name->task < 0 && colon && number(colon + 1, rest, &name->task);
    if (name->kind[0]) /* behind "gpu:0/" */
        return name->index >= 0 && name->part < 0 && number(text, size, &name->part);
    if (key == 6 && strncmp(text, "device", 6) == 0)
        return colon && device_part(colon + 1, rest, name);
    return device_part(text, size, name);
}

tutti_status tutti_device_parse(const char *text, tutti_device_name *ret)
{
    tutti_device_name name = {.replica = -1, .task = -1, .index = -1, .part = -1};
    if (!text || !ret)
        return tutti_fail(TUTTI_INVALID, text ? "tutti_device_parse: the place of the name is NULL"
                                              : "the device name is NULL");
    const char *at = *text == '/' ? text + 1 : text;
    while (*at) {
        size_t size = strcspn(at, "/");
        if (!part(at, size, &name))
            return tutti_fail(TUTTI_INVALID,
                              "device '%s': cannot read '%.*s'; names look like "
                              "/job:worker/replica:0/task:1/device:GPU:0, /cpu:0, far:1 or gpu:0/1",
                              text, (int)size, at);
        at += size;
        if (*at == '/' && !*++at)
            return tutti_fail(TUTTI_INVALID, "device '%s' ends in '/'", text);
    }
    *ret = name;
    return TUTTI_OK;
}

tutti_device_name tutti_device_merge(const tutti_device_name *outer, const tutti_device_name *inner)
{
    tutti_device_name merged = *inner;
    if (!merged.job[0])
        memcpy(merged.job, outer->job, sizeof merged.job);
    if (merged.replica < 0)
        merged.replica = outer->replica;
    if (merged.task < 0)
        merged.task = outer->task;
    if (!merged.kind[0]) {
        memcpy(merged.kind, outer->kind, sizeof merged.kind);
        merged.index = outer->index;
        merged.part = outer->part;
    } else if (merged.index < 0 && strcmp(merged.kind, outer->kind) == 0) {
        merged.index = outer->index;
        merged.part = outer->part;
    }
    return merged;
}

const char *tutti_device_text(const tutti_device_name *name, char ret_text[TUTTI_DEVICE_TEXT])
{
    int at = 0;
    ret_text[0] = 0;
#define ADD(...) at += snprintf(ret_text + at, TUTTI_DEVICE_TEXT - (size_t)at, __VA_ARGS__)
    if (name->job[0])
        ADD("/job:%s", name->job);
    if (name->replica >= 0)
        ADD("/replica:%d", name->replica);
    if (name->task >= 0)
        ADD("/task:%d", name->task);
    if (name->kind[0])
        ADD("/%s", name->kind);
    if (name->kind[0] && name->index >= 0)
        ADD(":%d", name->index);
    if (name->kind[0] && name->part >= 0)
        ADD("/%d", name->part);
#undef ADD
    return ret_text;
}

const char *tutti_device_local(const tutti_device_name *name, char ret_text[TUTTI_DEVICE_TEXT])
{
    tutti_device_name local = *name;
    local.job[0] = 0;
    local.replica = local.task = -1;
    local.index = local.index < 0 ? 0 : local.index;
    if (!local.kind[0])
        memcpy(local.kind, "cpu", sizeof "cpu");
    (void)tutti_device_text(&local, ret_text);
    return memmove(ret_text, ret_text + 1, strlen(ret_text));
}
