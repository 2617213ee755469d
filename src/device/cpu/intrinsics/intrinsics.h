/* intrinsics.h: the compiler's headers for the instruction set at hand and the longest of C's, read
 * once for all files of a set. A file that uses them includes them itself. */
#include <math.h>

#if defined(__ARM_FEATURE_SVE)
#include <arm_sve.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__AVX2__)
#include <immintrin.h>
#endif
