/* libgpuarray's NVRTC compiles kernels ahead to the same PTX, and reports the same errors. The
   argument is the directory that contains libgpuarray.so.3. No device is needed. */
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
static void (*compile_ahead)(int, const char *const *, const char *, int);
static void (*finish)(void);

static const char *header = "#define KERNEL extern \"C\" __global__\n", *header_name = "cluda.h";

/* Compile a source as libgpuarray does; return the PTX or, if it does not compile, the log. */
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
  void *nvrtc;

  snprintf(path, sizeof path, "%s/gpuarray/libnvrtc.so", argc > 1 ? argv[1] : "");
  if (!(nvrtc = dlopen(path, RTLD_NOW)))
    return fprintf(stderr, "%s\n", dlerror()), 1;
  *(void **)&create = dlsym(nvrtc, "nvrtcCreateProgram");
  *(void **)&compile = dlsym(nvrtc, "nvrtcCompileProgram");
  *(void **)&destroy = dlsym(nvrtc, "nvrtcDestroyProgram");
  *(void **)&get_size = dlsym(nvrtc, "nvrtcGetPTXSize");
  *(void **)&get_ptx = dlsym(nvrtc, "nvrtcGetPTX");
  *(void **)&get_log_size = dlsym(nvrtc, "nvrtcGetProgramLogSize");
  *(void **)&get_log = dlsym(nvrtc, "nvrtcGetProgramLog");
  *(void **)&compile_ahead = dlsym(nvrtc, "compile_kernels_ahead");
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
  compile_ahead(COUNT, pointers, "compute_90", 4);
  compile_ahead(2, pointers, "compute_90", 4);
  compile_ahead(2, pointers, "compute_80", 4);
  /* The threads are at work: request the sources in another order, and the last one twice. */
  for (int i = 0; i <= COUNT; i++) {
    int number = i == COUNT ? 33 : 7 * i % COUNT;
    text = build(sources[number], "compute_90");
    if (strcmp(text, expected[number]))
      return fprintf(stderr, "%s\n%s\n", text, expected[number]), 6;
    free(text);
  }
  /* A program that is created, but compiled for another architecture. */
  compile_ahead(1, pointers, "compute_90", 1);
  sleep(1); /* A thread has compiled the program. */
  text = build(sources[0], "compute_80");
  if (!strstr(text, ".target sm_80"))
    return 7;
  compile_ahead(COUNT, pointers, "compute_90", 4);
  finish();
  text = build(sources[1], "compute_90");
  return strcmp(text, expected[1]) ? 8 : 0;
}
