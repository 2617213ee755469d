/* registry.c: operators by name: the generated table and those that users register. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "graph/graph.h"
#include "tables/op.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static tutti_map registered; /* "name" (newest) and "name@version" */
static TUTTI_VEC(const tutti_op *) all;
static bool ready;

static tutti_status registry_add(const tutti_op *op)
{
    char key[256];
    snprintf(key, sizeof key, "%s@%d", op->name, op->version);
    if (tutti__map_get(&registered, key))
        return tutti_fail(TUTTI_EXISTS,
                          "operator '%s' is registered already; choose another name or version",
                          key);
    const tutti_op *newest = tutti__map_get(&registered, op->name);
    if (!TUTTI_VEC_RESERVE_ONE(&all))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for operator '%s'", key);
    TUTTI_TRY(tutti__map_set(&registered, key, (void *)op));
    if (!newest || newest->version < op->version) {
        tutti_status status = tutti__map_set(&registered, op->name, (void *)op);
        if (status != TUTTI_OK) {
            (void)tutti__map_set(&registered, key, NULL); /* what is there needs no memory */
            return status;
        }
    }
    all.data[all.count++] = op;
    return TUTTI_OK;
}

/* Whether all of the generated table stands in the map; without memory for it none of it does, and
 * the next call tries again. */
static bool make_ready(void)
{
    if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
        return true;
    tutti_status status = TUTTI_OK;
    pthread_rwlock_wrlock(&lock);
    for (const tutti_op *const *op = tutti__op_table; !ready && status == TUTTI_OK && *op; op++)
        status = registry_add(*op);
    if (status == TUTTI_OK) {
        __atomic_store_n(&ready, true, __ATOMIC_RELEASE);
    } else {
        tutti__map_free(&registered);
        TUTTI_VEC_FREE(&all);
    }
    pthread_rwlock_unlock(&lock);
    return status == TUTTI_OK;
}

/* In the generated table, for which no memory is needed. */
static const tutti_op *find_built_in(const char *name)
{
    char key[256];
    const tutti_op *newest = NULL;
    for (const tutti_op *const *op = tutti__op_table; *op; op++) {
        snprintf(key, sizeof key, "%s@%d", (*op)->name, (*op)->version);
        if (strcmp(key, name) == 0)
            return *op;
        if (strcmp((*op)->name, name) == 0 && (!newest || newest->version < (*op)->version))
            newest = *op;
    }
    return newest;
}

static tutti_status registry_check(const tutti_op *op)
{
    if (!op || op->struct_size < offsetof(tutti_op, samples) || !op->name || !op->name[0])
        return tutti_fail(TUTTI_INVALID,
                          "an operator needs struct_size = sizeof(tutti_op) and a name");
    if (strlen(op->name) > 200 || strchr(op->name, '@') || strchr(op->name, ' '))
        return tutti_fail(TUTTI_INVALID,
                          "operator '%s': a name has no '@' or space and at most 200 bytes",
                          op->name);
    if (!op->infer || (!op->reference && !(op->flags & (TUTTI_OP_VIEW | TUTTI_OP_CONTROL))))
        return tutti_fail(TUTTI_INVALID,
                          "operator '%s' needs a shape rule (infer) and a reference kernel",
                          op->name);
    if (op->version < 1)
        return tutti_fail(TUTTI_INVALID, "operator '%s' is of version %d; the first one is 1",
                          op->name, op->version);
    if (op->max_inputs >= 0 && op->min_inputs > op->max_inputs)
        return tutti_fail(TUTTI_INVALID, "operator '%s': at least %d inputs and at most %d",
                          op->name, op->min_inputs, op->max_inputs);
    if (op->min_inputs < 0 || op->max_inputs < -1 || op->outputs < -1)
        return tutti_fail(
            TUTTI_INVALID,
            "operator '%s': at least %d inputs, at most %d, %d outputs; -1 stands for "
            "any number of the last two",
            op->name, op->min_inputs, op->max_inputs, op->outputs);
    return TUTTI_OK;
}

bool tutti__op_is_built_in(const tutti_op *op)
{
    for (const tutti_op *const *each = tutti__op_table; *each; each++)
        if (*each == op)
            return true;
    return false;
}

tutti_status tutti_op_register(const tutti_op *op)
{
    TUTTI_TRY(registry_check(op));
    if (!make_ready())
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the table of operators");
    pthread_rwlock_wrlock(&lock);
    tutti_status status = registry_add(op);
    pthread_rwlock_unlock(&lock);
    return status;
}

const tutti_op *tutti_op_find(const char *name)
{
    if (!make_ready())
        return find_built_in(name);
    pthread_rwlock_rdlock(&lock);
    const tutti_op *op = tutti__map_get(&registered, name);
    pthread_rwlock_unlock(&lock);
    return op;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const tutti_op *const *)a)->name, (*(const tutti_op *const *)b)->name);
}

size_t tutti_op_list(size_t capacity, const tutti_op **ret_ops)
{
    const tutti_op *const *ops = tutti__op_table;
    size_t count = 0;
    bool whole = make_ready();
    pthread_rwlock_rdlock(&lock);
    if (whole) {
        ops = all.data;
        count = all.count;
    } else {
        while (ops[count])
            count++;
    }
    if (ret_ops && capacity)
        memcpy(ret_ops, ops, (count < capacity ? count : capacity) * sizeof *ret_ops);
    pthread_rwlock_unlock(&lock);
    if (ret_ops)
        qsort(ret_ops, count < capacity ? count : capacity, sizeof *ret_ops, by_name);
    return count;
}
