/* engine.c: engines by name. */
#include "comm/fabric/engine.h"

#include <string.h>

#include "base/container.h"
#include "tables/fabric_engine.h"

tutti_status tutti__engine_find(const char *name, const tutti_fabric_engine **ret_engine)
{
    tutti_text names = {0};
    for (const tutti_fabric_engine *const *each = tutti__fabric_engine_table; *each; each++) {
        if (strcmp((*each)->name, name) == 0) {
            tutti__text_free(&names);
            *ret_engine = *each;
            return (*each)->available ? (*each)->available() : TUTTI_OK;
        }
        tutti__text_add(&names, "%s%s", names.size ? ", " : "", (*each)->name);
    }
    tutti_status status = tutti_fail(TUTTI_NOT_FOUND, "there is no engine '%s'; these exist: %s",
                                     name, names.data ? names.data : "none");
    tutti__text_free(&names);
    return status;
}
