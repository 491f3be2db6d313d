/* Check that the libraries in lib/gpuarray give access to CUDA's functions, pass the correct compute
   type of float16 products, report the expected compute capability, and link machine code without the
   driver. The arguments are the
   directory that contains libgpuarray.so.3, and the two numbers of the expected capability. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int gemm_ex(void *, int, int, int, int, int, const void *, const void *, int, int,
                    const void *, int, int, const void *, void *, int, int, int, int);

typedef int get_attribute(int *, int, int);
typedef int add_data(void *, int, void *, size_t, const char *, unsigned, int *, void **);
typedef int complete(void *, void **, size_t *);

enum { CUDA_R_32F = 0, CUBLAS_COMPUTE_32F = 68 };

static void *open_library(const char *directory, const char *name) {
  char path[4096];
  void *handle;

  snprintf(path, sizeof path, "%s/%s", directory, name);
  if (!(handle = dlopen(path, RTLD_NOW)))
    fprintf(stderr, "%s\n", dlerror());
  return handle;
}

/* Link PTX or machine code; return the size of the result, or -1 if its address is wrong. The driver's stub
   returns the size 7. */
static long link_code(void *cuda, void *code, size_t size) {
  add_data *add = (add_data *)dlsym(cuda, "cuLinkAddData");
  complete *finish = (complete *)dlsym(cuda, "cuLinkComplete");
  int link;
  void *result;

  if (add(&link, 1, code, size, "", 0, NULL, NULL) || finish(&link, &result, &size))
    return -1;
  return size == 7 || result == code ? (long)size : -1;
}

int main(int argc, char **argv) {
  void *gpuarray = open_library(argv[1], "libgpuarray.so.3");
  void *nvrtc = open_library(argv[1], "gpuarray/libnvrtc.so");
  void *cublas = open_library(argv[1], "gpuarray/libcublas.so");
  void *cuda = open_library(argv[1], "gpuarray/libcuda.so");
  get_attribute *get = cuda ? dlsym(cuda, "cuDeviceGetAttribute") : NULL;
  int warp_size, major, minor;
  int *compute_type = dlsym(RTLD_DEFAULT, "compute_type");
  gemm_ex *gemm = cublas ? dlsym(cublas, "cublasGemmEx") : NULL;

  if (!gpuarray || !nvrtc || !dlsym(nvrtc, "nvrtcCompileProgram") || !gemm || !compute_type ||
      !get)
    return 1;
  if (gemm(0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, CUDA_R_32F, 99))
    return 2;
  if (*compute_type != CUBLAS_COMPUTE_32F)
    return 3;
  if (link_code(cuda, "\177ELF code", 10) != 10 || link_code(cuda, ".version", 9) != 7 ||
      link_code(cuda, "\177ELF", 5) != 5)
    return 5;
  if (get(&warp_size, 10, 0) || get(&major, 75, 0) || get(&minor, 76, 0))
    return 4;
  return warp_size != 32 || major != atoi(argv[2]) || minor != atoi(argv[3]);
}
