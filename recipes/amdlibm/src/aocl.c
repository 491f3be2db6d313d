/* Forward the scalars of amdlibm.h and their vector variants to AMD's AOCL-LibM.

   AMD's library is unchanged. bind() loads it with RTLD_LOCAL, so that programs linked
   with this library cannot see its symbols: AMD's array functions have the same names as
   this library's, but take an int as length. If a release lacks a function, or if the
   survey at build time found wrong results, the forward jumps to the function that builds
   without AMD's library use: the function of glibc, powf.c or exp_log.c. */
#include "amdlibm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* "forward name, amd, fallback" defines the function `name`. It jumps to AMD's function
   `amd` if proved.s contains it, and otherwise to `fallback`. All three take the same
   arguments in the same registers. */
__asm__(".include \"proved.s\"\n"
        ".macro forward name, amd, fallback\n"
        "    .globl \\name\n"
        "    .type \\name, @function\n"
        "\\name:\n"
        "    jmp *.Ltarget\\@(%rip)\n"
        "    .size \\name, . - \\name\n"
        "    .pushsection forwards, \"aw\"\n"
        ".Ltarget\\@:\n"
        "    .quad \\fallback, .Lname\\@\n"
        "    .popsection\n"
        "    .pushsection .rodata\n"
        ".Lname\\@:\n"
        "    .ifdef proved_\\amd\n"
        "    .ascii \"\\amd\"\n"
        "    .endif\n"
        "    .byte 0\n"
        "    .popsection\n"
        ".endm");
#define FORWARD(name, amd, fallback) __asm__("forward " #name ", " #amd ", " #fallback);

/* Forward the scalar and all vector variants of a function, for double and for float. AMD's
   names contain the number of lanes. The names of the vector function ABI also contain a
   letter for the instruction set. AMD has no variants for AVX without AVX2. namef is the
   name of the fallback for float. */
#define FORWARDS(name, v, namef)                                                     \
    FORWARD(amd_##name, amd_##name, name)                                            \
    FORWARD(_ZGVbN2##v##_amd_##name, amd_vrd2_##name, _ZGVbN2##v##_##name)           \
    FORWARD(_ZGVcN4##v##_amd_##name, , _ZGVcN4##v##_##name)                          \
    FORWARD(_ZGVdN4##v##_amd_##name, amd_vrd4_##name, _ZGVdN4##v##_##name)           \
    FORWARD(_ZGVeN8##v##_amd_##name, amd_vrd8_##name, _ZGVeN8##v##_##name)           \
    FORWARD(amd_##name##f, amd_##name##f, namef)                                     \
    FORWARD(_ZGVbN4##v##_amd_##name##f, amd_vrs4_##name##f, _ZGVbN4##v##_##namef)    \
    FORWARD(_ZGVcN8##v##_amd_##name##f, , _ZGVcN8##v##_##namef)                      \
    FORWARD(_ZGVdN8##v##_amd_##name##f, amd_vrs8_##name##f, _ZGVdN8##v##_##namef)    \
    FORWARD(_ZGVeN16##v##_amd_##name##f, amd_vrs16_##name##f, _ZGVeN16##v##_##namef)
#define UNARY(name) FORWARDS(name, v, name##f)
#define BINARY(name) FORWARDS_##name
#define FORWARDS_atan2 FORWARDS(atan2, vv, atan2f)
#define FORWARDS_pow FORWARDS(pow, vv, own_powf)
AMDLIBM_SCALARS(UNARY, BINARY)

struct forward {
    void *target;
    const char *name;
};
/* The linker defines these symbols at the ends of the section `forwards`. */
__attribute__((visibility("hidden"))) extern struct forward __start_forwards[], __stop_forwards[];

__attribute__((constructor)) static void bind(void)
{
    void *library = dlopen("libalm.so", RTLD_NOW | RTLD_LOCAL), *function;

    /* Do not silently use the fallbacks for all functions: the user requested AMD's library. */
    if (library == NULL) {
        fprintf(stderr, "libamdlibm.so: %s\n", dlerror());
        abort();
    }
    for (struct forward *forward = __start_forwards; forward < __stop_forwards; forward++)
        if ((function = dlsym(library, forward->name)) != NULL)
            forward->target = function;
}
