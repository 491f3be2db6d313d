/* Check that a kernel that a thread compiles ahead to PTX has the same PTX, or the same errors, as a
   kernel that libgpuarray compiles itself. The arguments are the directory that contains
   libgpuarray.so.3, and the target of the threads: compute_90, or sm_90 for machine code. No device is
   needed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int (*create)(void **, const char *, const char *, int, const char *const *,
                     const char *const *);
static int (*compile)(void *, int, const char *const *);
static int (*destroy)(void **);
static int (*get_size)(void *, size_t *), (*get_ptx)(void *, char *);
static int (*get_log_size)(void *, size_t *), (*get_log)(void *, char *);
static int (*compile_ahead)(int, const char *const *, const char *, const char *, int);
static void (*finish)(void);

static const char *header = "#define KERNEL extern \"C\" __global__\n", *header_name = "cluda.h";

/* Compile a source as libgpuarray does; return the code or, if it does not compile, the log. */
static char *build(const char *source, const char *architecture) {
  const char *options[] = {"-arch", architecture};
  void *program;
  size_t size;
  char *text;
  int status;

  if (create(&program, source, NULL, 1, &header, &header_name))
    exit(2);
  status = compile(program, 2, options);
  if ((status ? get_log_size : get_size)(program, &size) || !(text = malloc(size)) ||
      (status ? get_log : get_ptx)(program, text) || destroy(&program))
    exit(3);
  return text;
}

int main(int argc, char **argv) {
  enum { COUNT = 40 };
  char path[4096], sources[COUNT][200], *expected[COUNT], *text;
  const char *pointers[COUNT];
  const char *target = argv[2];
  int n_machine_code = 0;
  void *nvrtc, *program;

  if (argc != 3)
    return 1;
  snprintf(path, sizeof path, "%s/gpuarray/libnvrtc.so", argv[1]);
  if (!(nvrtc = dlopen(path, RTLD_NOW)))
    return fprintf(stderr, "%s\n", dlerror()), 1;
  *(void **)&create = dlsym(nvrtc, "nvrtcCreateProgram");
  *(void **)&compile = dlsym(nvrtc, "nvrtcCompileProgram");
  *(void **)&destroy = dlsym(nvrtc, "nvrtcDestroyProgram");
  *(void **)&get_size = dlsym(nvrtc, "nvrtcGetPTXSize");
  *(void **)&get_ptx = dlsym(nvrtc, "nvrtcGetPTX");
  *(void **)&get_log_size = dlsym(nvrtc, "nvrtcGetProgramLogSize");
  *(void **)&get_log = dlsym(nvrtc, "nvrtcGetProgramLog");
  *(void **)&compile_ahead = dlsym(nvrtc, "compile_kernels_in_threads");
  *(void **)&finish = dlsym(nvrtc, "finish_kernels");
  if (!compile_ahead || !finish)
    return 4;
  /* Every tenth source does not compile. */
  for (int i = 0; i < COUNT; i++) {
    snprintf(sources[i], sizeof sources[i],
             "#include \"cluda.h\"\nKERNEL void k%d(double *x) { x[0] = sin(x[0]) * %d%s; }", i, i,
             i % 10 == 3 ? " + missing" : "");
    pointers[i] = sources[i];
    expected[i] = build(sources[i], "compute_90");
    if (!strstr(expected[i], i % 10 == 3 ? "missing" : ".entry"))
      return 5;
  }
  compile_ahead(COUNT, pointers, "compute_90", target, 4);
  compile_ahead(2, pointers, "compute_90", target, 4);
  compile_ahead(2, pointers, "compute_80", "compute_80", 4);
  /* While the threads compile, request the sources in another order, and the last source twice. On a
     busy machine, the threads start late, so repeat this with machine code. */
  for (int round = 0; round < (*target == 's' ? 20 : 1) && n_machine_code < COUNT / 2; round++) {
    if (round) {
      compile_ahead(COUNT, pointers, "compute_90", target, 4);
      sleep(1);
    }
    for (int i = 0; i <= COUNT; i++) {
      int number = i == COUNT ? 33 : 7 * i % COUNT;
      text = build(sources[number], "compute_90");
      /* If no thread has started to compile a source, the result is PTX. */
      if (*target == 's' && !memcmp(text, "\177ELF", 4))
        n_machine_code++;
      else if (strcmp(text, expected[number]))
        return fprintf(stderr, "%s\n%s\n", text, expected[number]), 6;
      free(text);
    }
  }
  if (*target == 's' && n_machine_code < COUNT / 2)
    return 10;
  /* Compile a program for another architecture than the thread. */
  compile_ahead(1, pointers, "compute_90", target, 1);
  sleep(1); /* A thread has compiled the program. */
  text = build(sources[0], "compute_80");
  if (!strstr(text, ".target sm_80"))
    return 7;
  compile_ahead(COUNT, pointers, "compute_90", target, 4);
  finish();
  program = NULL;
  if (!create(&program, "#error no kernel: this source passes the header to the threads", NULL, 1,
              &header, &header_name) ||
      program)
    return 9;
  text = build(sources[1], "compute_90");
  return strcmp(text, expected[1]) ? 8 : 0;
}
