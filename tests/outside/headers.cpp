/* headers.cpp: the headers are C++17 too. The macros that take options by name are C only; the
 * functions behind them end in _with. With names in C++20: names.cpp. */
#include <tutti/tutti.h>

static tutti_sym dense(tutti_sym x, tutti_sym w, tutti_sym b)
{
    tutti_matmul_options options = {};
    options.struct_size = sizeof options;
    return tutti_relu(tutti_add(tutti_matmul_with(x, w, &options), b));
}

static tutti_sym halves(tutti_sym x)
{
    tutti_sym y = tutti_sub(1.0, tutti_mul(x, 0.5));
    return tutti_where(tutti_greater(y, 0), y, 0.0);
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
    return tutti_sym_ok(dense(none, none, none)) || tutti_sym_ok(halves(none)) || run(nullptr, none, &value) == TUTTI_OK;
}
