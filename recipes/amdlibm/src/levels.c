/* Library for LD_PRELOAD that makes AMD's AOCL-LibM select the code for the processor in
   $LEVEL: zen to zen5, or another value for other processors. AOCL-LibM contains the
   functions below, but calls them through symbols that a preloaded library can override. */
#include <stdlib.h>
#include <string.h>

#define IS(name)                                     \
    int au_cpuid_arch_is_##name(unsigned cpu)        \
    {                                                \
        (void)cpu;                                   \
        return strcmp(getenv("LEVEL"), #name) == 0;  \
    }
IS(zen)
IS(zen2)
IS(zen3)
IS(zen4)
IS(zen5)
