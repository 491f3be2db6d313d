/* Adapter from libgpuarray to NVRTC that compiles kernels in threads before libgpuarray needs them.

   compile_kernels_ahead adds sources to a list. If libgpuarray then creates a program with one of
   these sources, it receives the program that a thread has compiled with equal arguments. If no
   thread has started to compile the source, or if its compilation failed, libgpuarray compiles it
   itself.

   libgpuarray passes the same header to all programs. The threads start when the header is known:
   if all kernels are in libgpuarray's disk cache, no program is created, and no thread starts. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WAITING, RUNNING, COMPILED };
enum { SUCCESS = 0, INTERNAL_ERROR = 11 };

typedef struct Kernel {
  struct Kernel *next;
  char *source;
  void *program;
  int state, status;
} Kernel;

typedef int create(void **, const char *, const char *, int, const char *const *,
                   const char *const *);
typedef int compile(void *, int, const char *const *);
typedef int destroy(void **);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* The sources that libgpuarray has not requested yet, in the order in which they were added. */
static Kernel *requests;
/* Programs that a thread compiled, between libgpuarray's calls of create and of compile. */
static Kernel *created;
static char *header, *header_name, *architecture;
static int n_threads, n_running;

/* Return a function of the real NVRTC. This library exports functions of the same names. */
static void *find(const char *name) {
  void *nvrtc = dlopen("libnvrtc.so.13", RTLD_LAZY | RTLD_NOLOAD);
  return nvrtc ? dlsym(nvrtc, name) : NULL;
}

static int create_program(void **program, const char *source, const char *name, int n,
                          const char *const *headers, const char *const *names) {
  create *function = (create *)find("nvrtcCreateProgram");
  return function ? function(program, source, name, n, headers, names) : INTERNAL_ERROR;
}

static int compile_program(void *program, int n, const char *const *options) {
  compile *function = (compile *)find("nvrtcCompileProgram");
  return function ? function(program, n, options) : INTERNAL_ERROR;
}

static int destroy_program(void **program) {
  destroy *function = (destroy *)find("nvrtcDestroyProgram");
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

  for (kernel = requests; kernel; kernel = next) {
    next = kernel->next;
    if (kernel->state == WAITING && remove_kernel(&requests, kernel))
      free_kernel(kernel);
  }
}

/* Compile the waiting kernels one after another: the function of a thread. */
static void *compile_waiting(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  for (;;) {
    Kernel *kernel = requests;
    const char *options[] = {"-arch", architecture};

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
      kernel->status = compile_program(kernel->program, 2, options);
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

  for (Kernel *kernel = requests; kernel; kernel = kernel->next)
    n_waiting += kernel->state == WAITING;
  for (; header && n_running < n_threads && n_waiting; n_waiting--) {
    if (pthread_create(&thread, NULL, compile_waiting, NULL))
      break;
    pthread_detach(thread);
    n_running++;
  }
}

/* A forked process has no threads. It compiles all kernels itself. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void after_fork_in_child(void) {
  requests = NULL;
  n_running = 0;
  pthread_mutex_unlock(&lock);
}

/* Compile kernels in at most `threads` threads for an architecture such as "compute_90". All calls
   of a process must have the same architecture; otherwise, a call has no effect. */
void compile_kernels_ahead(int count, const char *const *sources, const char *new_architecture,
                           int threads) {
  pthread_mutex_lock(&lock);
  if (!architecture) {
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    architecture = strdup(new_architecture);
  }
  if (architecture && !strcmp(architecture, new_architecture)) {
    n_threads = threads;
    for (int i = 0; i < count; i++) {
      Kernel **end = &requests, *kernel;

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
  }
  pthread_mutex_unlock(&lock);
}

/* Wait until the threads have ended. Call this before the process ends: NVRTC's destructors must not
   run while a thread compiles. */
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
  Kernel *kernel;

  if (name || n != 1)
    return create_program(program, source, name, n, headers, names);
  pthread_mutex_lock(&lock);
  for (kernel = requests; kernel && strcmp(kernel->source, source);)
    kernel = kernel->next;
  if (kernel && kernel->state == WAITING) {
    remove_kernel(&requests, kernel);
    free_kernel(kernel);
    kernel = NULL;
  }
  if (!header) {
    header_name = strdup(names[0]);
    header = header_name ? strdup(headers[0]) : NULL;
    start_threads();
  }
  if (kernel) {
    while (kernel->state != COMPILED)
      pthread_cond_wait(&changed, &lock);
    remove_kernel(&requests, kernel);
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

/* Remove a program from the list `created`; return whether the list had it. */
static int take_created(void *program) {
  Kernel *kernel;

  pthread_mutex_lock(&lock);
  for (kernel = created; kernel && kernel->program != program;)
    kernel = kernel->next;
  if (kernel) {
    remove_kernel(&created, kernel);
    free_kernel(kernel);
  }
  pthread_mutex_unlock(&lock);
  return kernel != NULL;
}

int nvrtcCompileProgram(void *program, int n, const char *const *options) {
  if (take_created(program) && n == 2 && !strcmp(options[0], "-arch") &&
      !strcmp(options[1], architecture))
    return SUCCESS;
  return compile_program(program, n, options);
}

int nvrtcDestroyProgram(void **program) {
  take_created(*program);
  return destroy_program(program);
}
