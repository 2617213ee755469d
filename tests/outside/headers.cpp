/* headers.cpp: the headers are C++ too. The macros that take options by name are C only; the
 * functions behind them are called with their names in parentheses. */
#include <tutti/tutti.h>

static tutti_sym dense(tutti_sym x, tutti_sym w, tutti_sym b)
{
    tutti_matmul_options options = {};
    options.struct_size = sizeof options;
    return tutti_relu(tutti_add(tutti_matmul_with(x, w, &options), b));
}

static tutti_status run(tutti_session *session, tutti_sym y, tutti_tensor **ret_value)
{
    tutti_fetch fetch = {y, ret_value};
    tutti_run_options options = {};
    options.struct_size = sizeof options;
    options.fetch.count = 1;
    options.fetch.list = &fetch;
    return tutti_run_with(session, &options);
}

int main()
{
    tutti_sym none = {};
    tutti_tensor *value = nullptr;
    return tutti_sym_ok(dense(none, none, none)) || run(nullptr, none, &value) == TUTTI_OK;
}
