/* params.c: parameters from the program or the environment. */
#include "base/params.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/container.h"
#include "base/log.h"

/* `lock` guards the maps. `overrides` maps a name to a key of `texts`, or to NULL once removed.
 * Keys of `texts` are never freed: tutti__param_text hands them out without a lifetime. `told` has
 * the lines that were said. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tutti_map overrides, texts, told;

/* Under `lock`. */
static tutti_status keep_text(const char *text, char **ret)
{
    char *kept = tutti__map_get(&texts, text);
    if (kept == NULL) {
        TUTTI_TRY(tutti__map_set(&texts, text, NULL));
        tutti_map_entry *entry = &texts.entries[texts.count - 1];
        kept = entry->value = entry->key;
    }
    *ret = kept;
    return TUTTI_OK;
}

tutti_status tutti__param_set(const char *name, const char *value)
{
    char *kept = NULL;
    pthread_mutex_lock(&lock);
    tutti_status status = value == NULL ? TUTTI_OK : keep_text(value, &kept);
    if (status == TUTTI_OK)
        status = tutti__map_set(&overrides, name, kept);
    pthread_mutex_unlock(&lock);
    return status;
}

const char *tutti__param_text(const tutti_param *param)
{
    pthread_mutex_lock(&lock);
    const char *text = tutti__map_get(&overrides, param->name);
    pthread_mutex_unlock(&lock);
    if (text != NULL)
        return text;
    char variable[128];
    int length = snprintf(variable, sizeof variable, "TUTTI_%s", param->name);
    if (length > 0 && (size_t)length < sizeof variable)
        text = getenv(variable);
    return text != NULL ? text : param->fallback;
}

static bool read_int(const char *text, int64_t *ret)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0')
        return false;
    *ret = value;
    return true;
}

/* Some are read in every step, and a line is said once. */
static void tell(const tutti_param *param, const char *text)
{
    char line[256];
    snprintf(line, sizeof line,
             "TUTTI_%s is '%s', needs a whole number from 0 up; %s is used instead", param->name,
             text, param->fallback);
    pthread_mutex_lock(&lock);
    bool first = tutti__map_get(&told, line) == NULL &&
                 tutti__map_set(&told, line, (void *)(uintptr_t)1) == TUTTI_OK;
    pthread_mutex_unlock(&lock);
    if (first)
        tutti__log_job(TUTTI_LOG_WARNING, "%s", line);
}

int64_t tutti__param_int(const tutti_param *param)
{
    int64_t value = 0;
    const char *text = tutti__param_text(param);
    if (read_int(text, &value) && value >= 0)
        return value;
    tell(param, text);
    read_int(param->fallback, &value);
    return value;
}

tutti_status tutti__param_in(const tutti_param *param, int64_t least, int64_t most, int64_t *ret)
{
    const char *text = tutti__param_text(param);
    if (!read_int(text, ret) || *ret < least || *ret > most)
        return tutti_fail(TUTTI_INVALID, "TUTTI_%s is '%s', needs a whole number from %lld to %lld",
                          param->name, text, (long long)least, (long long)most);
    return TUTTI_OK;
}

static bool is_one_of(const char *text, size_t count, const char *const *words)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

bool tutti__switch_read(const char *text, bool *ret)
{
    static const char *const yes[] = {"1", "true", "yes", "on"}, *const no[] = {"0", "false", "no",
                                                                                "off", ""};
    *ret = is_one_of(text, TUTTI_COUNT(yes), yes);
    return *ret || is_one_of(text, TUTTI_COUNT(no), no);
}

bool tutti__param_flag(const tutti_param *param)
{
    bool on;
    return tutti__switch_read(tutti__param_text(param), &on) && on;
}

tutti_status tutti__param_switch(const tutti_param *param, bool *ret)
{
    bool on;
    const char *text = tutti__param_text(param);
    if (!tutti__switch_read(text, &on))
        return tutti_fail(TUTTI_INVALID, "TUTTI_%s is '%s', needs " TUTTI_SWITCH_WORDS, param->name,
                          text);
    *ret = on;
    return TUTTI_OK;
}
