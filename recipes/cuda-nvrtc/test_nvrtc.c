/* Check that NVRTC compiles a kernel for each architecture that an argument names. */
#include <nvrtc.h>
#include <stdio.h>
#include <string.h>

static const char *const source =
    "extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }";

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    char option[32], ptx[1 << 14] = "";
    const char *options[] = {option};
    nvrtcProgram program;
    size_t size;

    snprintf(option, sizeof option, "-arch=%s", argv[i]);
    if (nvrtcCreateProgram(&program, source, "twice", 0, NULL, NULL) ||
        nvrtcCompileProgram(program, 1, options) || nvrtcGetPTXSize(program, &size) ||
        size > sizeof ptx || nvrtcGetPTX(program, ptx) || !strstr(ptx, ".entry twice")) {
      fprintf(stderr, "NVRTC does not compile for %s\n", argv[i]);
      return 1;
    }
  }
  return 0;
}
