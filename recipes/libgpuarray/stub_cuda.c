/* Stub of NVIDIA's driver with one device. CAPABILITY=120 sets the compute capability 12.0. */
#include <stdlib.h>

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  int capability = atoi(getenv("CAPABILITY"));

  *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : 32;
  return 0;
}

int cuLinkAddData(void) { return 0; }
int cuLinkComplete(void *link, void **code, size_t *size) { return *size = 7, *code = link, 0; }
