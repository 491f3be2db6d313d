/* AMD's AOCL-LibM behind the scalars of amdlibm.h and their vector variants.

   AMD's library stays as it is, and is loaded out of reach of the programs that
   link with this one: its array functions have the names of ours, but count with
   int. What a release lacks, or was not seen to compute right when this was built,
   is what amdlibm has without AMD's: glibc's, or powf.c's and exp_log.c's. */
#include "amdlibm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* "forward OURS, AMDS, OTHERS" defines a function that jumps to AMD's, if proved.s
   has it, or the other, which takes the same arguments in the same registers. */
__asm__(".include \"proved.s\"\n"
        ".macro forward ours, amds, others\n"
        "    .globl \\ours\n"
        "    .type \\ours, @function\n"
        "\\ours:\n"
        "    jmp *.Ltarget\\@(%rip)\n"
        "    .size \\ours, . - \\ours\n"
        "    .pushsection forwards, \"aw\"\n"
        ".Ltarget\\@:\n"
        "    .quad \\others, .Lname\\@\n"
        "    .popsection\n"
        "    .pushsection .rodata\n"
        ".Lname\\@:\n"
        "    .ifdef proved_\\amds\n"
        "    .ascii \"\\amds\"\n"
        "    .endif\n"
        "    .byte 0\n"
        "    .popsection\n"
        ".endm");
#define FORWARD(ours, amds, others) __asm__("forward " #ours ", " #amds ", " #others);

/* By lanes in AMD's names, by instruction set in the vector function ABI's. AMD
   has none for AVX without AVX2. namef is the other function of floats. */
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
/* The linker's names of the ends of the section that the forwards are in. */
__attribute__((visibility("hidden"))) extern struct forward __start_forwards[], __stop_forwards[];

__attribute__((constructor)) static void bind(void)
{
    void *library = dlopen("libalm.so", RTLD_NOW | RTLD_LOCAL), *found;

    /* All of glibc's, in silence, would not be what was asked for. */
    if (library == NULL) {
        fprintf(stderr, "libamdlibm.so: %s\n", dlerror());
        abort();
    }
    for (struct forward *each = __start_forwards; each < __stop_forwards; each++)
        if ((found = dlsym(library, each->name)) != NULL)
            each->target = found;
}
