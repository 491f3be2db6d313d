// Audit library (rtld-audit(7)) that counts and times a process's calls of NVIDIA's
// driver.
//
// The environment variable LD_AUDIT names this library, and THEANO_FAST_DRIVER_CALLS
// names the file for the counts. libgpuarray, cuBLAS and cuDNN look up the driver's
// functions at run time, by dlsym or cuGetProcAddress. The dynamic loader passes each
// lookup to this library, which replaces the function by a trampoline. Without a
// driver, no function is looked up, and the file does not change.
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <utility>

namespace {

// A record of the file: 24 bytes for the group's name, then the number of calls and
// their total time. GROUP of driver_calls.py has the same format.
struct Group {
    char name[24];
    uint64_t calls, nanoseconds;
};

// The groups, and the names of their functions without version suffixes.
const struct {
    const char *group, *functions;
} GROUPS[] = {
    {"launches",
     "cuLaunchKernel cuLaunchKernelEx cuLaunchCooperativeKernel cuLaunch cuLaunchGrid "
     "cuLaunchGridAsync"},
    {"graph launches", "cuGraphLaunch"},
    {"copies to the device", "cuMemcpyHtoD cuMemcpyHtoDAsync"},
    {"copies to the host", "cuMemcpyDtoH cuMemcpyDtoHAsync"},
    {"copies on the device",
     "cuMemcpyDtoD cuMemcpyDtoDAsync cuMemcpyPeer cuMemcpyPeerAsync"},
    {"other copies",
     "cuMemcpy cuMemcpyAsync cuMemcpy2D cuMemcpy2DAsync cuMemcpy2DUnaligned "
     "cuMemcpy3D cuMemcpy3DAsync cuMemcpy3DPeer cuMemcpy3DPeerAsync"},
    {"memsets",
     "cuMemsetD8 cuMemsetD16 cuMemsetD32 cuMemsetD8Async cuMemsetD16Async "
     "cuMemsetD32Async cuMemsetD2D8 cuMemsetD2D16 cuMemsetD2D32 cuMemsetD2D8Async "
     "cuMemsetD2D16Async cuMemsetD2D32Async"},
    {"synchronizations", "cuCtxSynchronize cuStreamSynchronize cuEventSynchronize"},
    {"module loads",
     "cuModuleLoad cuModuleLoadData cuModuleLoadDataEx cuModuleLoadFatBinary "
     "cuLibraryLoadData cuLibraryLoadFromFile cuLinkComplete"},
    {"allocations",
     "cuMemAlloc cuMemAllocAsync cuMemAllocFromPoolAsync cuMemAllocHost "
     "cuMemAllocManaged cuMemAllocPitch cuMemHostAlloc cuMemHostRegister "
     "cuMemCreate"},
    {"events", "cuEventRecord cuEventRecordWithFlags cuEventQuery cuStreamWaitEvent"},
    {"queries",
     "cuCtxGetCurrent cuCtxGetDevice cuDeviceGetAttribute cuFuncGetAttribute "
     "cuMemGetInfo cuPointerGetAttribute cuPointerGetAttributes"},
};
constexpr int COUNT = sizeof GROUPS / sizeof *GROUPS;

// The counts: `in_memory` before the file is mapped, then the mapped file.
Group in_memory[COUNT];
Group *counts = in_memory;

using Word = void *;
using Function = Word (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word,
                          Word, Word);

// The function that each trampoline calls, and the function's group. A trampoline
// passes 12 words, because the driver's functions have at most 12 parameters. Functions
// in GROUPS have no floating-point parameters, which are not passed as words.
constexpr int TRAMPOLINES = 160;
struct {
    Function function;
    int group;
} targets[TRAMPOLINES];
// A spin lock for changes of `targets`.
bool locked;

// Return the time of the monotonic clock in nanoseconds.
uint64_t read_clock() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

// Call targets[I].function; count and time the call in its group.
template <int I>
Word trampoline(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i,
                Word j, Word k, Word l) {
    uint64_t start = read_clock();
    Word status = targets[I].function(a, b, c, d, e, f, g, h, i, j, k, l);
    Group &group = counts[targets[I].group];
    __atomic_fetch_add(&group.nanoseconds, read_clock() - start, __ATOMIC_RELAXED);
    __atomic_fetch_add(&group.calls, 1, __ATOMIC_RELAXED);
    return status;
}

// Return trampoline number i of the sequence I.
template <int... I>
Function select_trampoline(int i, std::integer_sequence<int, I...>) {
    static const Function all[] = {trampoline<I>...};
    return all[i];
}

// Return trampoline number i.
Function get_trampoline(int i) {
    return select_trampoline(i, std::make_integer_sequence<int, TRAMPOLINES>());
}

// Return whether a list of words contains a function's name without the suffix of its
// version, such as _v2.
bool contains(const char *list, const char *name) {
    const char *suffix = strpbrk(name, "_");
    size_t length = suffix ? suffix - name : strlen(name);
    for (const char *word = list; word && *word; word = strchr(word, ' ')) {
        word += *word == ' ';
        if (!strncmp(word, name, length) && (word[length] == ' ' || !word[length]))
            return true;
    }
    return false;
}

// Return the replacement of a function of the driver: a trampoline if a group contains
// its name, look_up for cuGetProcAddress, otherwise the function itself.
void *replace(const char *name, void *function);

// The driver's cuGetProcAddress and cuGetProcAddress_v2, in the order of their lookups.
Function get_proc_address[2];

// Call cuGetProcAddress, and replace the function that it looks up. The fifth
// parameter, `status_address`, exists only in cuGetProcAddress_v2.
template <int NUMBER>
Word look_up(Word symbol, Word address, Word version, Word flags, Word status_address) {
    Word status = get_proc_address[NUMBER](symbol, address, version, flags,
                                           status_address, 0, 0, 0, 0, 0, 0, 0);
    void **function = static_cast<void **>(address);
    if (!status && function && *function)
        *function = replace(static_cast<const char *>(symbol), *function);
    return status;
}

void *replace(const char *name, void *function) {
    if (!strcmp(name, "cuGetProcAddress") || !strcmp(name, "cuGetProcAddress_v2")) {
        // Each of the two names can refer to either function: a lookup of
        // cuGetProcAddress by cuGetProcAddress returns the version that the caller's
        // headers define. So the wrappers distinguish functions by address.
        Word (*wrappers[])(Word, Word, Word, Word, Word) = {look_up<0>, look_up<1>};
        for (int i = 0; i < 2; i++) {
            if (function == (void *)wrappers[i])
                return function;
            if (!get_proc_address[i])
                get_proc_address[i] = (Function)function;
            if (function == (void *)get_proc_address[i])
                return (void *)wrappers[i];
        }
        return function;
    }
    for (int group = 0; group < COUNT; group++) {
        if (!contains(GROUPS[group].functions, name))
            continue;
        while (__atomic_test_and_set(&locked, __ATOMIC_ACQUIRE)) {
        }
        int i = 0;
        while (i < TRAMPOLINES && targets[i].function &&
               targets[i].function != (Function)function &&
               get_trampoline(i) != (Function)function)
            i++;
        if (i < TRAMPOLINES && !targets[i].function)
            targets[i] = {(Function)function, group};
        __atomic_clear(&locked, __ATOMIC_RELEASE);
        return i < TRAMPOLINES ? (void *)get_trampoline(i) : function;
    }
    return function;
}

// Map the file for the counts, and use it instead of `in_memory`. Write the names of
// the groups.
void open_file() {
    const char *name = getenv("THEANO_FAST_DRIVER_CALLS");
    int file = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    if (file >= 0 && !ftruncate(file, sizeof in_memory)) {
        void *memory = mmap(nullptr, sizeof in_memory, PROT_READ | PROT_WRITE,
                            MAP_SHARED, file, 0);
        if (memory != MAP_FAILED)
            counts = static_cast<Group *>(memory);
    }
    if (file >= 0)
        close(file);
    for (int i = 0; i < COUNT; i++)
        strcpy(counts[i].name, GROUPS[i].group);
}

} // namespace

extern "C" {

unsigned la_version(unsigned version) {
    return version;
}

unsigned la_objopen(link_map *object, Lmid_t, uintptr_t *) {
    const char *slash = strrchr(object->l_name, '/');
    const char *file = slash ? slash + 1 : object->l_name;
    // The driver is libcuda.so.1 or libcuda.so.VERSION. Ignore libgpuarray's adapter
    // libcuda.so (recipes/libgpuarray/cuda.c), which calls the functions of
    // libcuda.so.1.
    if (strncmp(file, "libcuda.so.", 11))
        return 0;
    if (counts == in_memory)
        open_file();
    return LA_FLG_BINDTO;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned, uintptr_t *, uintptr_t *,
                       unsigned *, const char *name) {
    return (uintptr_t)replace(name, (void *)symbol->st_value);
}
}
