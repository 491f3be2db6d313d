/* Adapter from libgpuarray 0.7.6 to devices of compute capability 10.0 (Blackwell) and above.

   libgpuarray keeps only two digits of the capability. It compiles for "compute_10" on a device
   with 10.0, and for "compute_12" on a device with 12.0. NVRTC refuses these names. So this
   library reports 9.0 for such devices. NVIDIA's driver compiles the PTX of compute_90 for all
   later devices. */
#include <dlfcn.h>
#include <stddef.h>

typedef int get_attribute(int *value, int attribute, int device);

enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, NOT_INITIALIZED = 3 };

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  get_attribute *get = driver ? dlsym(driver, "cuDeviceGetAttribute") : NULL;
  int status, major;

  if (!get)
    return NOT_INITIALIZED;
  status = get(value, attribute, device);
  if (status || (attribute != CAPABILITY_MAJOR && attribute != CAPABILITY_MINOR))
    return status;
  status = get(&major, CAPABILITY_MAJOR, device);
  if (!status && major > 9)
    *value = attribute == CAPABILITY_MAJOR ? 9 : 0;
  return status;
}
