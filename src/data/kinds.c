/* kinds.c: datasets by name. */
#include <string.h>

#include "data/dataset.h"
#include "tables/dataset_kind.h"

const tutti_dataset_kind *tutti_dataset_kind_at(int index)
{
    for (int i = 0; i <= index; i++)
        if (index < 0 || !tutti__dataset_kind_table[i])
            return NULL;
    return index < 0 ? NULL : tutti__dataset_kind_table[index];
}

static const tutti_dataset_kind *kinds_find(const char *name)
{
    for (int i = 0; name && tutti__dataset_kind_table[i]; i++)
        if (strcmp(tutti__dataset_kind_table[i]->name, name) == 0)
            return tutti__dataset_kind_table[i];
    return NULL;
}

static tutti_status kinds_refuse(const char *name)
{
    tutti_text known = {0};
    for (int i = 0; tutti__dataset_kind_table[i]; i++)
        tutti__text_add(&known, "%s%s", i ? ", " : "", tutti__dataset_kind_table[i]->name);
    tutti_status status = tutti_fail(TUTTI_NOT_FOUND, "there is no dataset '%s'; there are: %s",
                                     name ? name : "(null)", known.data ? known.data : "");
    tutti__text_free(&known);
    return status;
}

tutti_dataset *tutti_load_dataset_with(tutti_job *job, const char *name, const char *split,
                                       const tutti_load_dataset_options *options)
{
    if (!tutti__job_able(job))
        return NULL;
    const tutti_dataset_kind *kind = kinds_find(name);
    if (!kind) {
        tutti_job_fail(job, kinds_refuse(name));
        return NULL;
    }
    tutti_dataset *dataset = kind->open(job, split);
    return options && options->one_hot ? (tutti_one_hot_labels)(dataset, -1, kind->classes)
                                       : dataset;
}
