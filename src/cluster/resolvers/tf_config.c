/* tf_config.c: TF_CONFIG, as TensorFlow's users write it and Kubeflow's TFJob sets it:
 *
 *     {"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]},
 *      "task": {"type": "worker", "index": 0}}
 *
 * Members that are not understood ("environment", "rpc_layer") are passed over. */
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"
#include "cluster/json_reader.h"

/* Whether it tells of a cluster or a task. */
static tutti_status tells(tutti_json_reader *reader, bool *ret_tells)
{
    char key[64];
    bool more, inner;
    TUTTI_TRY(tutti__json_open(reader, '{', &more));
    while (more) {
        TUTTI_TRY(tutti__json_key_name(reader, key, sizeof key));
        tutti_json_reader value = *reader;
        bool cluster = strcmp(key, "cluster") == 0 || strcmp(key, "sparseCluster") == 0;
        bool empty = tutti__json_open(&value, '{', &inner) == TUTTI_OK && !inner;
        if ((cluster && !empty) || strcmp(key, "task") == 0)
            *ret_tells = true;
        TUTTI_TRY(tutti__json_skip(reader));
        TUTTI_TRY(tutti__json_more(reader, '}', &more));
    }
    return tutti__json_end_of_text(reader);
}

/* "{}" says nothing, nor does one that has neither a cluster nor a task, as to TensorFlow. */
static bool tf_config_present(const tutti_cluster_options *options)
{
    bool told = false;
    TUTTI_UNUSED(options);
    if (!tutti__environment_has("TF_CONFIG"))
        return false;
    const char *text = getenv("TF_CONFIG");
    tutti_json_reader reader = {.text = text, .at = text};
    return tells(&reader, &told) != TUTTI_OK || told;
}

/* A number written as a text, as keys are. */
static tutti_status read_number(const char *what, const char *text, int *ret)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < 0 || number > TUTTI_MOST_RANKS)
        return tutti_fail(TUTTI_INVALID, "%s is '%s', not a whole number from 0", what, text);
    *ret = (int)number;
    return TUTTI_OK;
}

static tutti_status read_address(tutti_json_reader *reader, tutti_role role, char *ret_task,
                                 size_t size)
{
    TUTTI_TRY(tutti__json_read_text(reader, ret_task, size));
    if (*ret_task == '\0')
        return tutti_fail(TUTTI_INVALID,
                          "an address of '%s' is empty; write every task's, for example node1:4000",
                          tutti_role_text(role));
    return TUTTI_OK;
}

/* {"0": "a:1", "1": "b:1"}, in any order, as TensorFlow's ClusterSpec takes it too. There the
 * numbers may have gaps; here every task is a process that the others wait for. */
static tutti_status read_numbered(tutti_json_reader *reader, tutti_role role,
                                  tutti_cluster *cluster)
{
    char key[64], task[300];
    int index, missing = 0;
    bool more;
    TUTTI_TRY(tutti__json_open(reader, '{', &more));
    while (more) {
        TUTTI_TRY(tutti__json_key_name(reader, key, sizeof key));
        TUTTI_TRY(read_number("the number of a task", key, &index));
        TUTTI_TRY(read_address(reader, role, task, sizeof task));
        while ((size_t)index >= cluster->tasks[role].count)
            TUTTI_TRY(tutti__cluster_add(cluster, role, ""));
        if (cluster->tasks[role].data[index][0] != '\0')
            return tutti_fail(TUTTI_INVALID, "task %d of '%s' stands there twice", index,
                              tutti_role_text(role));
        cluster->tasks[role].data[index] = tutti__arena_string(&cluster->arena, task);
        if (cluster->tasks[role].data[index] == NULL)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for the tasks of a cluster");
        TUTTI_TRY(tutti__json_more(reader, '}', &more));
    }
    while ((size_t)missing < cluster->tasks[role].count &&
           cluster->tasks[role].data[missing][0] != '\0')
        missing++;
    if ((size_t)missing < cluster->tasks[role].count || missing == 0)
        return tutti_fail(TUTTI_INVALID,
                          "'%s' has no task %d; number them from 0 without gaps, or write a list",
                          tutti_role_text(role), missing);
    return TUTTI_OK;
}

/* A list of addresses, one address alone, or addresses by their numbers. */
static tutti_status read_tasks(tutti_json_reader *reader, tutti_role role, tutti_cluster *cluster)
{
    char task[300];
    if (tutti__json_peek(reader) == '{')
        return read_numbered(reader, role, cluster);
    if (tutti__json_peek(reader) == '"') {
        TUTTI_TRY(read_address(reader, role, task, sizeof task));
        return tutti__cluster_add(cluster, role, task);
    }
    bool more;
    TUTTI_TRY(tutti__json_open(reader, '[', &more));
    if (!more)
        return tutti_fail(TUTTI_INVALID,
                          "the list of '%s' is empty; add the addresses of its tasks, or leave the "
                          "role out",
                          tutti_role_text(role));
    while (more) {
        TUTTI_TRY(read_address(reader, role, task, sizeof task));
        TUTTI_TRY(tutti__cluster_add(cluster, role, task));
        TUTTI_TRY(tutti__json_more(reader, ']', &more));
    }
    return TUTTI_OK;
}

static tutti_status read_cluster(tutti_json_reader *reader, tutti_cluster *cluster)
{
    char key[64];
    tutti_role role;
    bool more;
    TUTTI_TRY(tutti__json_open(reader, '{', &more));
    while (more) {
        TUTTI_TRY(tutti__json_key_name(reader, key, sizeof key));
        TUTTI_TRY(tutti__role_read(key, &role));
        if (cluster->tasks[role].count > 0)
            return tutti_fail(TUTTI_INVALID,
                              "the list of '%s' stands there twice; make one list of the two",
                              tutti_role_text(role));
        TUTTI_TRY(read_tasks(reader, role, cluster));
        TUTTI_TRY(tutti__json_more(reader, '}', &more));
    }
    return TUTTI_OK;
}

/* The index may be written as a text. */
static tutti_status read_index(tutti_json_reader *reader, tutti_cluster *cluster)
{
    char text[32];
    if (tutti__json_peek(reader) != '"')
        return tutti__json_read_int(reader, 0, TUTTI_MOST_RANKS, &cluster->index);
    TUTTI_TRY(tutti__json_read_text(reader, text, sizeof text));
    return read_number("task.index", text, &cluster->index);
}

typedef struct told {
    bool type, index;
} told;

static tutti_status read_task(tutti_json_reader *reader, tutti_cluster *cluster, told *task)
{
    char key[64], role[32];
    bool more;
    TUTTI_TRY(tutti__json_open(reader, '{', &more));
    while (more) {
        TUTTI_TRY(tutti__json_key_name(reader, key, sizeof key));
        if (strcmp(key, "type") == 0) {
            TUTTI_TRY(tutti__json_read_text(reader, role, sizeof role));
            TUTTI_TRY(tutti__role_read(role, &cluster->role));
            task->type = true;
        } else if (strcmp(key, "index") == 0) {
            TUTTI_TRY(read_index(reader, cluster));
            task->index = true;
        } else
            TUTTI_TRY(tutti__json_skip(reader));
        TUTTI_TRY(tutti__json_more(reader, '}', &more));
    }
    return TUTTI_OK;
}

static tutti_status read_config(tutti_json_reader *reader, tutti_cluster *cluster)
{
    char key[64];
    bool more, sparse = false, full = false;
    told task = {0};
    TUTTI_TRY(tutti__json_open(reader, '{', &more));
    while (more) {
        TUTTI_TRY(tutti__json_key_name(reader, key, sizeof key));
        if (strcmp(key, "cluster") == 0)
            TUTTI_TRY(read_cluster(reader, cluster));
        else if (strcmp(key, "task") == 0)
            TUTTI_TRY(read_task(reader, cluster, &task));
        else
            TUTTI_TRY(tutti__json_skip(reader));
        sparse = sparse || strcmp(key, "sparseCluster") == 0;
        full = full || strcmp(key, "cluster") == 0;
        TUTTI_TRY(tutti__json_more(reader, '}', &more));
    }
    TUTTI_TRY(tutti__json_end_of_text(reader));
    if (sparse && !full)
        return tutti_fail(
            TUTTI_UNSUPPORTED,
            "it has a 'sparseCluster', of a job whose workers come and go, which does "
            "not say who they all are; leave enableDynamicWorker out");
    if (!task.type)
        return tutti_fail(TUTTI_INVALID, "task.type is missing; write \"task\": {\"type\": "
                                         "\"worker\", \"index\": 0}");
    if (!task.index && cluster->tasks[cluster->role].count > 1)
        return tutti_fail(
            TUTTI_INVALID,
            "task.index is missing; write which of the %zu tasks of '%s' this process "
            "is, from 0: \"task\": {\"type\": \"%s\", \"index\": 0}",
            cluster->tasks[cluster->role].count, tutti_role_text(cluster->role),
            tutti_role_text(cluster->role));
    return TUTTI_OK;
}

static tutti_status tf_config_resolve(const tutti_cluster_options *options, tutti_cluster *cluster)
{
    TUTTI_UNUSED(options);
    const char *text = getenv("TF_CONFIG");
    if (text == NULL)
        return tutti_fail(TUTTI_NOT_FOUND, "TF_CONFIG is not set");
    tutti_json_reader reader = {.text = text, .at = text};
    return read_config(&reader, cluster);
}

const tutti_resolver tutti_resolver_tf_config = {
    .name = "tf_config",
    .order = 20,
    .reads = "TF_CONFIG",
    .present = tf_config_present,
    .resolve = tf_config_resolve,
};
