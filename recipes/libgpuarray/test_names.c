/* CUDA's functions are found through the libraries in lib/gpuarray, and a product of float16 is
   computed in the right type. The argument is the directory that contains libgpuarray.so.3. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

typedef int gemm_ex(void *, int, int, int, int, int, const void *, const void *, int, int,
                    const void *, int, int, const void *, void *, int, int, int, int);

enum { CUDA_R_32F = 0, CUBLAS_COMPUTE_32F = 68 };

static void *open_beside(const char *directory, const char *name) {
  char path[4096];
  void *handle;

  snprintf(path, sizeof path, "%s/%s", directory, name);
  if (!(handle = dlopen(path, RTLD_NOW)))
    fprintf(stderr, "%s\n", dlerror());
  return handle;
}

int main(int argc, char **argv) {
  void *gpuarray = open_beside(argv[1], "libgpuarray.so.3");
  void *nvrtc = open_beside(argv[1], "gpuarray/libnvrtc.so");
  void *cublas = open_beside(argv[1], "gpuarray/libcublas.so");
  int *computed_in = dlsym(RTLD_DEFAULT, "computed_in");
  gemm_ex *gemm = cublas ? dlsym(cublas, "cublasGemmEx") : NULL;

  if (!gpuarray || !nvrtc || !dlsym(nvrtc, "nvrtcCompileProgram") || !gemm || !computed_in)
    return 1;
  if (gemm(0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, CUDA_R_32F, 99))
    return 2;
  return *computed_in != CUBLAS_COMPUTE_32F;
}
