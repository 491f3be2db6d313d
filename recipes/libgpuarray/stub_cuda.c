/* Replacement of NVIDIA's driver: a device whose compute capability is $CAPABILITY, as 120. */
#include <stdlib.h>

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  int capability = atoi(getenv("CAPABILITY"));

  *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : 32;
  return 0;
}
