/* isa.h: names in files that are compiled once for each instruction set.
 *
 * The build defines TUTTI_ISA (base, avx2, avx512, sve). A descriptor in such a file is written
 *
 *     const tutti_comm_fold TUTTI_ISA_NAME(tutti_comm_fold) = {
 *
 * and becomes tutti_fold_avx2 and so on. A function that several such files share is compiled in
 * one of them; its header names it in the same way:
 *
 *     #define direct_run TUTTI_ISA_NAME(tutti__direct_run)
 *     void direct_run(...);
 *
 * Everything else in the file must be static. */
#ifndef TUTTI_BASE_ISA_H
#define TUTTI_BASE_ISA_H

#ifndef TUTTI_ISA
#error "this file belongs into tutti_isa_sources, which the build compiles with TUTTI_ISA defined"
#endif

#define TUTTI_ISA_PASTE_(name, isa) name##_##isa
#define TUTTI_ISA_PASTE(name, isa) TUTTI_ISA_PASTE_(name, isa)
#define TUTTI_ISA_NAME(name) TUTTI_ISA_PASTE(name, TUTTI_ISA)

/* The instruction set as text: "avx2". */
#define TUTTI_ISA_QUOTE_(isa) #isa
#define TUTTI_ISA_QUOTE(isa) TUTTI_ISA_QUOTE_(isa)
#define TUTTI_ISA_TEXT TUTTI_ISA_QUOTE(TUTTI_ISA)

#endif
