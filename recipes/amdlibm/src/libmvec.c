/* Select libmvec's SSE variants for the processor. The code for this selection in libmvec's
   archive needs the other parts of a static glibc. The variants for AVX2 and AVX-512 need
   no selection: only code for these instruction sets calls them. */
#include "amdlibm.h"

#define CHOOSE(vector)                                                        \
    void vector##_sse2(void), vector##_sse4(void);                            \
    static void (*choose_##vector(void))(void)                                \
    {                                                                         \
        __builtin_cpu_init();                                                 \
        return __builtin_cpu_supports("sse4.1") ? vector##_sse4 : vector##_sse2; \
    }                                                                         \
    void vector(void) __attribute__((ifunc("choose_" #vector)));
#define UNARY(name) CHOOSE(_ZGVbN2v_##name) CHOOSE(_ZGVbN4v_##name##f)
#define BINARY(name) CHOOSE(_ZGVbN2vv_##name) CHOOSE(_ZGVbN4vv_##name##f)
AMDLIBM_SCALARS(UNARY, BINARY)
