/* winograd.c: whether convolutions may be computed by Winograd's tiles. */
#include "base/params.h"
#include "device/cpu/conv/winograd_setting.h"

static const tutti_param winograd_param = TUTTI_PARAM(
    "WINOGRAD", "1", "3x3 convolutions by Winograd's tiles where they are faster; 0: term by term");

tutti_status tutti__winograd_check_setting(void)
{
    bool wanted;
    return tutti__param_switch(&winograd_param, &wanted);
}

bool tutti__winograd_wanted(void)
{
    return tutti__param_flag(&winograd_param);
}
