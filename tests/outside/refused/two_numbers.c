/* two_numbers.c: an operator of two takes a number on one side; two numbers are refused by the
 * compiler. With -DREFUSED it must not compile, without it must. */
#include <tutti/tutti.h>

tutti_sym sum(tutti_sym x);
tutti_sym sum(tutti_sym x)
{
#ifdef REFUSED
    return tutti_add(tutti_add(1, 2), x);
#else
    return tutti_add(tutti_add(1, x), 2);
#endif
}
