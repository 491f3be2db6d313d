/* Adapter from libgpuarray 0.7.6 to NVIDIA's driver.

   For devices of compute capability 10.0 (Blackwell) and above: libgpuarray keeps only two digits of the capability. It compiles for "compute_10" on a device
   with 10.0, and for "compute_12" on a device with 12.0. NVRTC refuses these names. So this
   library reports 9.0 for such devices. NVIDIA's driver compiles the PTX of compute_90 for all
   later devices.

   For machine code: libgpuarray passes the result of NVRTC to the driver's linker, which translates
   PTX to machine code. If the result is machine code already (nvrtc.c), the linker's result is the
   same machine code. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef int add_data(void *, int, void *, size_t, const char *, unsigned, int *, void **);
typedef int complete(void *, void **, size_t *);
typedef int get_attribute(int *value, int attribute, int device);

enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, NOT_INITIALIZED = 3 };

/* Machine code that this thread added to a link. libgpuarray creates, completes and destroys a link in
   one function, and keeps the code until then. */
static __thread struct {
  void *link, *code;
  size_t size;
} added;

/* Return a function of the driver. This library exports functions of the same names. */
static void *find_function(const char *name) {
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

  return driver ? dlsym(driver, name) : NULL;
}

int cuLinkAddData(void *link, int type, void *data, size_t size, const char *name, unsigned n,
                  int *options, void **values) {
  add_data *add = (add_data *)find_function("cuLinkAddData");
  int is_code = size > 4 && !memcmp(data, "\177ELF", 4);

  added.link = is_code ? link : NULL;
  added.code = data;
  added.size = size;
  if (is_code)
    return 0;
  return add ? add(link, type, data, size, name, n, options, values) : NOT_INITIALIZED;
}

int cuLinkComplete(void *link, void **code, size_t *size) {
  complete *finish = (complete *)find_function("cuLinkComplete");

  if (added.link != link)
    return finish ? finish(link, code, size) : NOT_INITIALIZED;
  *code = added.code;
  *size = added.size;
  added.link = NULL;
  return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  get_attribute *get = (get_attribute *)find_function("cuDeviceGetAttribute");
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
