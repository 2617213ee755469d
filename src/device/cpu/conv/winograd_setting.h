/* winograd_setting.h: TUTTI_WINOGRAD. A tile's outputs are sums and differences of all its inputs,
 * 6 by 6 of them: their errors are relative to the largest one, and where one is infinite or NaN
 * all 16 outputs may be NaN. */
#ifndef TUTTI_DEVICE_CPU_CONV_WINOGRAD_SETTING_H
#define TUTTI_DEVICE_CPU_CONV_WINOGRAD_SETTING_H

#include "base/status.h"

/* Whether the setting means something. */
tutti_status tutti__winograd_check_setting(void);
bool tutti__winograd_wanted(void);

#endif
