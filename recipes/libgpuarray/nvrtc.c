/* Adapter from libgpuarray to NVRTC that compiles kernels in threads before libgpuarray needs them.

   compile_kernels_in_threads adds sources to a list. If libgpuarray then creates a program from one of
   these sources, it receives the program that a thread has compiled from the source with equal
   arguments. libgpuarray compiles the source itself in two cases: no thread has started to compile
   it, or the compilation in the thread failed.

   The threads can compile to machine code. NVRTC compiles to PTX in one thread at a time, but
   translates PTX to machine code in several threads at the same time. libgpuarray requests PTX and
   passes it to the driver, which translates it when libgpuarray links it. If a thread has compiled
   machine code, libgpuarray receives the machine code instead of PTX, and cuda.c passes it by the
   driver's linker.

   The kernels of libgpuarray's BLAS are constant, and libgpuarray requests them when a device is
   initialized. This library contains their machine code (compile_kernels.py).

   libgpuarray passes the same header to all programs. The threads need this header, so they start
   when libgpuarray creates its first program. It creates no program if its disk cache contains all
   kernels that it needs. A program with the source HEADER_REQUEST only passes the header: it is not
   created. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAITING, RUNNING, COMPILED };
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };
enum { SUCCESS = 0, INVALID_INPUT = 3, INTERNAL_ERROR = 11 };

#define HEADER_REQUEST "#error no kernel: this source passes the header to the threads"

/* The machine code of a source for an architecture such as "sm_90". */
typedef struct {
  const char *source, *machine;
  const unsigned char *code;
  size_t size;
} MachineCode;

/* The constants shipped_header, the header of all sources, and shipped, an array of MachineCode. */
#include "kernels.h"

/* A kernel that a thread compiles, or a kernel with shipped machine code. A shipped kernel has no
   program of NVRTC: libgpuarray receives the address of this struct. */
typedef struct Kernel {
  struct Kernel *next;
  char *source;
  void *program;
  const MachineCode *shipped;
  int state, status;
} Kernel;

typedef int create(void **, const char *, const char *, int, const char *const *,
                   const char *const *);
typedef int compile(void *, int, const char *const *);
typedef int destroy(void **);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* The kernels that libgpuarray has not requested yet, in the order in which they were added. */
static Kernel *pending;
/* Kernels that a thread compiled or that are shipped, and whose programs libgpuarray has created but
   not destroyed. */
static Kernel *created;
static char *header, *header_name;
/* libgpuarray's architecture, such as "compute_90", and the threads' architecture: the same, or
   "sm_90" for machine code. */
static char *architecture, *target;
static int n_threads, n_running;

/* Return a function of a loaded library of NVIDIA. This library exports functions of the same names
   as NVRTC. */
static void *find(const char *soname, const char *name) {
  void *library = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  return library ? dlsym(library, name) : NULL;
}

/* Return a function of NVRTC. */
static void *find_function(const char *name) { return find("libnvrtc.so.13", name); }

/* Return the shipped machine code of a source for the device of the current context, or NULL. Ask the
   driver for the device's architecture: libgpuarray compiles for another architecture on Blackwell. */
static const MachineCode *find_shipped(const char *source, const char *new_header) {
  int (*get_device)(int *) = (int (*)(int *))find("libcuda.so.1", "cuCtxGetDevice");
  int (*get)(int *, int, int) =
      (int (*)(int *, int, int))find("libcuda.so.1", "cuDeviceGetAttribute");
  int device, major, minor;
  char machine[32];

  if (strcmp(new_header, shipped_header) || !get_device || !get || get_device(&device) ||
      get(&major, CAPABILITY_MAJOR, device) || get(&minor, CAPABILITY_MINOR, device))
    return NULL;
  snprintf(machine, sizeof machine, "sm_%d%d", major, minor);
  for (size_t i = 0; i < sizeof shipped / sizeof *shipped; i++)
    if (!strcmp(shipped[i].source, source) && !strcmp(shipped[i].machine, machine))
      return shipped + i;
  return NULL;
}

static int create_program(void **program, const char *source, const char *name, int n,
                          const char *const *headers, const char *const *names) {
  create *function = (create *)find_function("nvrtcCreateProgram");
  return function ? function(program, source, name, n, headers, names) : INTERNAL_ERROR;
}

static int compile_program(void *program, int n, const char *const *options) {
  compile *function = (compile *)find_function("nvrtcCompileProgram");
  return function ? function(program, n, options) : INTERNAL_ERROR;
}

static int destroy_program(void **program) {
  destroy *function = (destroy *)find_function("nvrtcDestroyProgram");
  return function ? function(program) : INTERNAL_ERROR;
}

static void free_kernel(Kernel *kernel) {
  free(kernel->source);
  free(kernel);
}

/* Remove a kernel from a list; return whether the list had it. */
static int remove_kernel(Kernel **list, const Kernel *kernel) {
  for (; *list; list = &(*list)->next)
    if (*list == kernel) {
      *list = kernel->next;
      return 1;
    }
  return 0;
}

/* Remove the kernels that no thread has started to compile. */
static void remove_waiting(void) {
  Kernel *kernel, *next;

  for (kernel = pending; kernel; kernel = next) {
    next = kernel->next;
    if (kernel->state == WAITING && remove_kernel(&pending, kernel))
      free_kernel(kernel);
  }
}

/* Compile the waiting kernels one after another: the function of a thread. */
static void *compile_waiting(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  for (;;) {
    Kernel *kernel = pending;
    /* -minimal omits the declarations of CUDA's runtime, which kernels do not use. */
    const char *options[] = {"-arch", target, "-minimal"};

    while (kernel && kernel->state != WAITING)
      kernel = kernel->next;
    if (!kernel)
      break;
    kernel->state = RUNNING;
    pthread_mutex_unlock(&lock);
    kernel->status = create_program(&kernel->program, kernel->source, NULL, 1,
                                    (const char *const *)&header,
                                    (const char *const *)&header_name);
    if (kernel->status == SUCCESS)
      kernel->status = compile_program(kernel->program, 3, options);
    pthread_mutex_lock(&lock);
    kernel->state = COMPILED;
    pthread_cond_broadcast(&changed);
  }
  n_running--;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* Start threads for the waiting kernels. The caller holds the lock. */
static void start_threads(void) {
  int n_waiting = 0;
  pthread_t thread;

  for (Kernel *kernel = pending; kernel; kernel = kernel->next)
    n_waiting += kernel->state == WAITING;
  for (; header && n_running < n_threads && n_waiting; n_waiting--) {
    if (pthread_create(&thread, NULL, compile_waiting, NULL))
      break;
    pthread_detach(thread);
    n_running++;
  }
}

/* A forked process does not have these threads, so it forgets the pending kernels. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void after_fork_in_child(void) {
  pending = NULL;
  n_running = 0;
  pthread_mutex_unlock(&lock);
}

/* Compile kernels in at most `threads` threads, for a target such as "sm_90", while libgpuarray's
   architecture is "compute_90". The target may be the architecture: then threads compile to PTX. A
   call has no effect if its architecture differs from the architecture of the process's first call.
   Return whether the threads wait for the header. */
int compile_kernels_in_threads(int count, const char *const *sources, const char *new_architecture,
                        const char *new_target, int threads) {
  int waits = 0;

  pthread_mutex_lock(&lock);
  if (!architecture) {
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    architecture = strdup(new_architecture);
    target = strdup(new_target);
  }
  if (architecture && target && !strcmp(architecture, new_architecture)) {
    n_threads = threads;
    for (int i = 0; i < count; i++) {
      Kernel **end = &pending, *kernel;

      while (*end && strcmp((*end)->source, sources[i]))
        end = &(*end)->next;
      if (*end || !(kernel = calloc(1, sizeof *kernel)))
        continue;
      if ((kernel->source = strdup(sources[i])))
        *end = kernel;
      else
        free(kernel);
    }
    start_threads();
    waits = pending && !header;
  }
  pthread_mutex_unlock(&lock);
  return waits;
}

/* Remove the waiting kernels, and wait until the threads have ended. Call this before the process
   ends: NVRTC's destructors must not run while a thread compiles. */
void finish_kernels(void) {
  pthread_mutex_lock(&lock);
  n_threads = 0;
  remove_waiting();
  while (n_running)
    pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

int nvrtcCreateProgram(void **program, const char *source, const char *name, int n,
                       const char *const *headers, const char *const *names) {
  const MachineCode *machine_code;
  Kernel *kernel;

  if (name || n != 1)
    return create_program(program, source, name, n, headers, names);
  pthread_mutex_lock(&lock);
  for (kernel = pending; kernel && strcmp(kernel->source, source);)
    kernel = kernel->next;
  if (kernel && kernel->state == WAITING) {
    remove_kernel(&pending, kernel);
    free_kernel(kernel);
    kernel = NULL;
  }
  if (!header) {
    header_name = strdup(names[0]);
    header = header_name ? strdup(headers[0]) : NULL;
    start_threads();
  }
  if (!strcmp(source, HEADER_REQUEST)) {
    pthread_mutex_unlock(&lock);
    return INVALID_INPUT;
  }
  machine_code = kernel ? NULL : find_shipped(source, headers[0]);
  if (machine_code && (kernel = calloc(1, sizeof *kernel))) {
    *program = kernel->program = kernel;
    kernel->shipped = machine_code;
    kernel->next = created;
    created = kernel;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
  }
  if (kernel) {
    while (kernel->state != COMPILED)
      pthread_cond_wait(&changed, &lock);
    remove_kernel(&pending, kernel);
    if (kernel->status == SUCCESS && !strcmp(header, headers[0]) && !strcmp(header_name, names[0])) {
      *program = kernel->program;
      kernel->next = created;
      created = kernel;
      pthread_mutex_unlock(&lock);
      return SUCCESS;
    }
    if (kernel->program)
      destroy_program(&kernel->program);
    free_kernel(kernel);
  }
  pthread_mutex_unlock(&lock);
  return create_program(program, source, name, n, headers, names);
}

/* Return the kernel of a program in the list `created`, or NULL. Only libgpuarray's thread destroys
   the program, so the kernel stays in the list until then. */
static Kernel *find_created(const void *program) {
  Kernel *kernel;

  pthread_mutex_lock(&lock);
  for (kernel = created; kernel && kernel->program != program;)
    kernel = kernel->next;
  pthread_mutex_unlock(&lock);
  return kernel;
}

/* Remove a kernel from the list `created`. */
static void forget_created(Kernel *kernel) {
  pthread_mutex_lock(&lock);
  remove_kernel(&created, kernel);
  pthread_mutex_unlock(&lock);
  free_kernel(kernel);
}

int nvrtcCompileProgram(void *program, int n, const char *const *options) {
  Kernel *kernel = find_created(program);

  if (kernel && (kernel->shipped || (n == 2 && !strcmp(options[0], "-arch") &&
                                     !strcmp(options[1], architecture))))
    return SUCCESS;
  if (kernel)
    forget_created(kernel);
  return compile_program(program, n, options);
}

int nvrtcDestroyProgram(void **program) {
  Kernel *kernel = find_created(*program);
  int is_shipped = kernel && kernel->shipped;

  if (kernel)
    forget_created(kernel);
  return is_shipped ? SUCCESS : destroy_program(program);
}

/* Write the size of a program's text into *size if `text` is NULL, otherwise the text into *text. The
   text is the code, or with `log`, the compiler's messages. */
static int read_program(void *program, size_t *size, char *text, int log) {
  const Kernel *kernel = find_created(program);
  const char *names[] = {"nvrtcGetPTXSize",   "nvrtcGetPTX",          "nvrtcGetCUBINSize",
                         "nvrtcGetCUBIN",     "nvrtcGetProgramLogSize", "nvrtcGetProgramLog"};
  int is_machine_code = kernel && !kernel->shipped && strcmp(target, architecture);
  int (*get)(void *, void *);

  if (kernel && kernel->shipped) {
    const unsigned char *shipped_text = log ? (const unsigned char *)"" : kernel->shipped->code;
    size_t shipped_size = log ? 1 : kernel->shipped->size;

    if (text)
      memcpy(text, shipped_text, shipped_size);
    else
      *size = shipped_size;
    return SUCCESS;
  }
  get = (int (*)(void *, void *))find_function(names[(log ? 4 : 2 * is_machine_code) + !!text]);
  return get ? get(program, text ? (void *)text : size) : INTERNAL_ERROR;
}

int nvrtcGetPTXSize(void *program, size_t *size) { return read_program(program, size, NULL, 0); }
int nvrtcGetPTX(void *program, char *text) { return read_program(program, NULL, text, 0); }
int nvrtcGetProgramLogSize(void *program, size_t *size) {
  return read_program(program, size, NULL, 1);
}
int nvrtcGetProgramLog(void *program, char *text) { return read_program(program, NULL, text, 1); }
