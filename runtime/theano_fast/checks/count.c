/* Library for LD_PRELOAD that counts the elements whose exponentials amdlibm computes.
   in_arrays counts the elements of array functions. in_loops counts the elements of the
   vector variants, which compiled loops call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

ptrdiff_t in_arrays, in_loops;

/* amdlibm's own function. The compiled module has loaded amdlibm already. */
#define NEXT(name) \
    ((__typeof__(&name))dlsym(dlopen("libamdlibm.so", RTLD_LAZY | RTLD_NOLOAD), #name))

#define ARRAY(name, type)                              \
    void name(ptrdiff_t n, const type *x, type *z)     \
    {                                                  \
        in_arrays += n;                                \
        NEXT(name)(n, x, z);                           \
    }
ARRAY(amd_vrsa_expf, float)
ARRAY(amd_vrda_exp, double)

/* The x86-64 vector function ABI defines the names. For example, _ZGVbN4v_amd_expf uses
   SSE2 (b), has no mask (N), 4 lanes, and a vector as argument (v). */
#define VARIANT(name, lanes, type, instructions)                                    \
    typedef type vector##name __attribute__((vector_size(lanes * sizeof(type))));   \
    __attribute__((target(instructions))) vector##name name(vector##name x)         \
    {                                                                               \
        in_loops += lanes;                                                          \
        return NEXT(name)(x);                                                       \
    }
VARIANT(_ZGVbN4v_amd_expf, 4, float, "sse2")
VARIANT(_ZGVcN8v_amd_expf, 8, float, "avx")
VARIANT(_ZGVdN8v_amd_expf, 8, float, "avx2")
VARIANT(_ZGVeN16v_amd_expf, 16, float, "avx512f")
VARIANT(_ZGVbN2v_amd_exp, 2, double, "sse2")
VARIANT(_ZGVcN4v_amd_exp, 4, double, "avx")
VARIANT(_ZGVdN4v_amd_exp, 4, double, "avx2")
VARIANT(_ZGVeN8v_amd_exp, 8, double, "avx512f")

#ifdef __cplusplus
}
#endif
