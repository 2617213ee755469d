/* settings_test.c: what the environment says of a strategy is right or refused by its name. */
#include "base/params.h"
#include "base/test.h"
#include "tutti/strategy.h"

/* What creating a strategy says with TUTTI_<name> set so. */
static void check(const char *name, const char *value, const char *expected)
{
    CHECK_OK(tutti__param_set(name, value));
    tutti_strategy *strategy = tutti_strategy_create("one_device", NULL);
    CHECK_STATUS(tutti_strategy_check(strategy), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), expected);
    tutti_strategy_close(strategy);
    CHECK_OK(tutti__param_set(name, NULL));
}

TUTTI_TEST(a_strategy_refuses_wrong_settings_by_their_names)
{
    check("SHARDS", "garbage", "TUTTI_SHARDS is 'garbage', needs a whole number from 1 to 1024");
    check("SHARDS", "0", "TUTTI_SHARDS is '0', needs a whole number from 1 to 1024");
    check("SHARDS", "2000", "TUTTI_SHARDS is '2000', needs a whole number from 1 to 1024");
    check("DEVICE", "", "TUTTI_DEVICE is empty");
}
