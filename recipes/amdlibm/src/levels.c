/* Preloaded, makes AMD's AOCL-LibM take the processor for the one in $LEVEL: zen to
   zen5, or of none of these names. The library asks AMD's cpuid functions, which are
   its own, but by names that others may define. */
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
