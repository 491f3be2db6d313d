/* Stubs of NVIDIA's libraries that imitate a machine with one CUDA device. They have the
   functions of the driver and of cuBLAS that libgpuarray calls. Device memory is memory
   of the host. Kernels are compiled, but do not run.

   The tests compile this file three times, with -DDRIVER, -DCUBLAS and -DNVRTC, into
   libraries with NVIDIA's sonames, and preload these libraries. The NVRTC stub calls the
   real NVRTC, whose path is in $NVRTC. It requests machine code instead of PTX, so that
   NVRTC also reports the errors of ptxas. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Define a function that does nothing and returns success. */
#define NOTHING(name) int name(void) { return 0; }

/* Return the integer in an environment variable, or `otherwise` if it is not set. */
static int setting(const char *name, int otherwise) {
  const char *value = getenv(name);
  return value ? atoi(value) : otherwise;
}

#ifdef DRIVER

NOTHING(cuCtxPopCurrent_v2) NOTHING(cuCtxPushCurrent_v2) NOTHING(cuDevicePrimaryCtxRelease)
NOTHING(cuDevicePrimaryCtxSetFlags) NOTHING(cuEventDestroy_v2) NOTHING(cuEventRecord)
NOTHING(cuEventSynchronize) NOTHING(cuGetErrorName) NOTHING(cuGraphDestroy)
NOTHING(cuGraphExecDestroy) NOTHING(cuGraphLaunch) NOTHING(cuIpcCloseMemHandle)
NOTHING(cuIpcGetMemHandle) NOTHING(cuIpcOpenMemHandle) NOTHING(cuLaunchKernel)
NOTHING(cuLinkAddData) NOTHING(cuLinkDestroy) NOTHING(cuMemcpyPeerAsync) NOTHING(cuModuleUnload)
NOTHING(cuStreamBeginCapture_v2) NOTHING(cuStreamDestroy_v2) NOTHING(cuStreamSynchronize) NOTHING(cuStreamWaitEvent)

/* Environment variables configure the device. $CAPABILITY: the compute capability times
   10 (default 90). $DRIVER_VERSION (default 13000). $DRIVER_ERROR: the result of cuInit
   (default 0). */
int cuInit(unsigned flags) { return setting("DRIVER_ERROR", 0); }
int cuDriverGetVersion(int *version) { return *version = setting("DRIVER_VERSION", 13000), 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, ordinal ? 101 : 0; }
int cuCtxGetDevice(int *device) { return *device = 0, 0; }
/* NVRTC requests undocumented tables, and works without them: return
   CUDA_ERROR_NOT_FOUND. */
int cuGetExportTable(const void **table, const void *id) { return 500; }
int cuGetErrorString(int error, const char **text) { return *text = "stub error", 0; }
int cuDeviceGetName(char *name, int size) { return snprintf(name, size, "stub"), 0; }
int cuDeviceGetPCIBusId(char *id, int size) { return snprintf(id, size, "0000:00:0"), 0; }

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  enum { SHARED_MEMORY = 8, WARP_SIZE = 10, MULTIPROCESSORS = 16, UNIFIED_ADDRESSING = 41 };
  enum { MAJOR = 75, MINOR = 76 };
  int capability = setting("CAPABILITY", 90);

  switch (attribute) {
  case SHARED_MEMORY: *value = 49152; break;
  case WARP_SIZE: *value = 32; break;
  case MULTIPROCESSORS: *value = 80; break;
  case UNIFIED_ADDRESSING: *value = 1; break;
  case MAJOR: *value = capability / 10; break;
  case MINOR: *value = capability % 10; break;
  default: *value = 1024;
  }
  return 0;
}

int cuFuncGetAttribute(int *value, int attribute, void *function) { return *value = 1024, 0; }

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  return *flags = 0, *active = 0, 0;
}

/* Set *out to a unique handle. */
static int handle(void **out) { return *out = malloc(1), 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return handle(context); }
int cuEventCreate(void **event, unsigned flags) { return handle(event); }
int cuStreamCreate(void **stream, unsigned flags) { return handle(stream); }
int cuLinkCreate(unsigned n, void *options, void **values, void **link) { return handle(link); }
int cuModuleLoadData(void **module, const void *image) { return handle(module); }
int cuModuleLoadDataEx(void **module, const void *image) { return handle(module); }
int cuModuleGetFunction(void **function, void *module, const char *name) {
  return handle(function);
}

/* The stub does not record the work that a stream captures: a graph has one kernel. */
int cuStreamEndCapture(void *stream, void **graph) { return handle(graph); }
int cuGraphGetNodes(void *graph, void **nodes, size_t *count) { return *count = 1, 0; }
int cuGraphNodeGetType(void *node, int *type) { return *type = 0, 0; }
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
  return handle(executable);
}

/* Each link translates a kernel from PTX. Append a line to the file $TRANSLATIONS, if this variable
   is set. */
int cuLinkComplete(void *link, void **image, size_t *size) {
  FILE *log = getenv("TRANSLATIONS") ? fopen(getenv("TRANSLATIONS"), "a") : NULL;
  if (log) {
    fprintf(log, "translated\n");
    fclose(log);
  }
  return *image = "image", *size = 6, 0;
}

int cuMemGetInfo_v2(size_t *available, size_t *total) {
  return *available = *total = (size_t)1 << 30, 0;
}
int cuMemAlloc_v2(void **memory, size_t size) { return *memory = calloc(size + 1, 1), 0; }
int cuMemAllocHost_v2(void **memory, size_t size) { return *memory = calloc(size + 1, 1), 0; }
int cuMemFree_v2(void *memory) { return free(memory), 0; }
int cuMemFreeHost(void *memory) { return free(memory), 0; }

static int copy(void *to, const void *from, size_t size) { return memmove(to, from, size), 0; }
int cuMemcpyDtoDAsync_v2(void *to, void *from, size_t size) { return copy(to, from, size); }
int cuMemcpyDtoHAsync_v2(void *to, void *from, size_t size) { return copy(to, from, size); }
int cuMemcpyHtoDAsync_v2(void *to, void *from, size_t size) { return copy(to, from, size); }
int cuMemcpyHtoD_v2(void *to, void *from, size_t size) { return copy(to, from, size); }
int cuMemsetD8Async(void *to, unsigned char value, size_t size) {
  return memset(to, value, size), 0;
}

#elif defined CUBLAS

NOTHING(cublasCreate_v2) NOTHING(cublasDestroy_v2) NOTHING(cublasSetStream_v2)
NOTHING(cublasSetPointerMode_v2) NOTHING(cublasGetPointerMode_v2) NOTHING(cublasSetAtomicsMode)
NOTHING(cublasSgemm_v2) NOTHING(cublasDgemm_v2) NOTHING(cublasSgemv_v2) NOTHING(cublasDgemv_v2)
NOTHING(cublasSger_v2) NOTHING(cublasDger_v2) NOTHING(cublasSdot_v2) NOTHING(cublasDdot_v2)
NOTHING(cublasSgemmEx) NOTHING(cublasGemmEx_64) NOTHING(cublasSgemmBatched)
NOTHING(cublasDgemmBatched) NOTHING(cublasSgemmStridedBatched)
NOTHING(cublasDgemmStridedBatched) NOTHING(cublasHgemmStridedBatched)

#elif defined NVRTC

typedef void *function(void *, void *, void *, void *, void *, void *);

/* Return a function of the real NVRTC. */
static function *real(const char *name) {
  static void *library;

  if (!library && !(library = dlopen(getenv("NVRTC"), RTLD_NOW))) {
    fprintf(stderr, "%s\n", dlerror());
    abort();
  }
  return (function *)dlsym(library, name);
}

#define FORWARD(name)                                                                     \
  void *name(void *a, void *b, void *c, void *d, void *e, void *f) {                      \
    return real(#name)(a, b, c, d, e, f);                                                 \
  }

FORWARD(nvrtcVersion) FORWARD(nvrtcCreateProgram) FORWARD(nvrtcDestroyProgram)
FORWARD(nvrtcGetErrorString) FORWARD(nvrtcGetPTX) FORWARD(nvrtcGetPTXSize)
FORWARD(nvrtcGetCUBIN) FORWARD(nvrtcGetCUBINSize)
FORWARD(nvrtcGetProgramLog) FORWARD(nvrtcGetProgramLogSize)

static void append_line(const char *file, const char *machine, int status) {
  FILE *log = fopen(file, "a");
  fprintf(log, "%s %d\n", machine, status);
  fclose(log);
}

/* Compile for sm_NN instead of compute_NN. Append a line to the file $KERNELS with the
   architecture and the compilation's status: "sm_90 0" is a success. Other threads than the main
   thread compile kernels early. They append each line to the file $EARLY_KERNELS, if this variable
   is set, and only successes to $KERNELS. If an early compilation failed and an op requests the
   kernel, the main thread compiles the kernel again. */
int nvrtcCompileProgram(void *program, int count, const char **options) {
  const char *new_options[16];
  char machine[32] = "";
  const int is_early = gettid() != getpid();
  long status;

  for (int i = 0; i < count; i++)
    if (strcmp(options[i], "-arch"))
      new_options[i] = options[i];
    else {
      snprintf(machine, sizeof machine, "sm_%s", strchr(options[i + 1], '_') + 1);
      new_options[i] = options[i];
      new_options[++i] = machine;
    }
  status = (long)real("nvrtcCompileProgram")(program, (void *)(long)count, new_options, 0, 0, 0);
  if (!is_early || !(int)status)
    append_line(getenv("KERNELS"), machine, (int)status);
  if (is_early && getenv("EARLY_KERNELS"))
    append_line(getenv("EARLY_KERNELS"), machine, (int)status);
  if ((int)status) {
    char errors[1 << 16] = "";
    nvrtcGetProgramLog(program, errors, 0, 0, 0, 0);
    fputs(errors, stderr);
  }
  return status;
}

#endif
