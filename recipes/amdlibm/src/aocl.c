/* AMD's AOCL-LibM behind the scalars of amdlibm.h and their vector variants.

   AMD's library stays as it is, and is loaded out of reach of the programs that
   link with this one: its array functions have the names of ours, but count with
   int. What a release lacks is glibc's, as in amdlibm.c. */
#include "amdlibm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* "forward OURS, AMDS, GLIBCS" defines a function that jumps to AMD's or glibc's,
   which take the same arguments in the same registers. */
__asm__(".macro forward ours, amds, glibcs\n"
        "    .globl \\ours\n"
        "    .type \\ours, @function\n"
        "\\ours:\n"
        "    jmp *.Ltarget\\@(%rip)\n"
        "    .size \\ours, . - \\ours\n"
        "    .pushsection forwards, \"aw\"\n"
        ".Ltarget\\@:\n"
        "    .quad \\glibcs, .Lname\\@\n"
        "    .popsection\n"
        "    .pushsection .rodata\n"
        ".Lname\\@:\n"
        "    .asciz \"\\amds\"\n"
        "    .popsection\n"
        ".endm");
#define FORWARD(ours, amds, glibcs) __asm__("forward " #ours ", " #amds ", " #glibcs);

/* By lanes in AMD's names, by instruction set in the vector function ABI's. AMD
   has none for AVX without AVX2. */
#define FORWARDS(name, v)                                                                 \
    FORWARD(amd_##name, amd_##name, name)                                                 \
    FORWARD(_ZGVbN2##v##_amd_##name, amd_vrd2_##name, _ZGVbN2##v##_##name)                \
    FORWARD(_ZGVcN4##v##_amd_##name, , _ZGVcN4##v##_##name)                               \
    FORWARD(_ZGVdN4##v##_amd_##name, amd_vrd4_##name, _ZGVdN4##v##_##name)                \
    FORWARD(_ZGVeN8##v##_amd_##name, amd_vrd8_##name, _ZGVeN8##v##_##name)                \
    FORWARD(amd_##name##f, amd_##name##f, name##f)                                        \
    FORWARD(_ZGVbN4##v##_amd_##name##f, amd_vrs4_##name##f, _ZGVbN4##v##_##name##f)       \
    FORWARD(_ZGVcN8##v##_amd_##name##f, , _ZGVcN8##v##_##name##f)                         \
    FORWARD(_ZGVdN8##v##_amd_##name##f, amd_vrs8_##name##f, _ZGVdN8##v##_##name##f)       \
    FORWARD(_ZGVeN16##v##_amd_##name##f, amd_vrs16_##name##f, _ZGVeN16##v##_##name##f)
#define UNARY(name) FORWARDS(name, v)
#define BINARY(name) FORWARDS(name, vv)
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
