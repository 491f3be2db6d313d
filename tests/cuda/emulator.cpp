/* Emulated libraries of NVIDIA that compute on the CPU. NVRTC compiles kernels by g++, the driver
   runs them, and cuBLAS calls the environment's CBLAS. The driver and cuBLAS are also linked with
   stubs.c. With the linker option -z muldefs, a function of this file replaces the stub of the same
   name.

   While a stream is captured, launches, copies and products are recorded as the nodes of a CUDA
   graph, and do not run. cuGraphLaunch runs them. Functions that a capture does not allow, such as
   synchronizations, fail and make the capture invalid.

   $EMULATOR is the folder for compiled kernels. $EMULATOR_HEADER is the path of emulator.h. $CBLAS
   is the path of the CBLAS library. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

extern "C" {

#ifdef DRIVER

// The data of the last cuLinkAddData: the path of a compiled kernel's shared library, which
// replaces PTX.
static std::string image;

int cuLinkAddData_v2(void *, int, void *data, size_t size) {
  image.assign((char *)data, size);
  return 0;
}
int cuLinkAddData(void *link, int type, void *data, size_t size) {
  return cuLinkAddData_v2(link, type, data, size);
}
int cuLinkComplete(void *, void **out, size_t *size) {
  *out = &image[0];
  *size = image.size() + 1;
  return 0;
}
int cuModuleLoadData(void **module, const void *path) {
  *module = dlopen((const char *)path, RTLD_NOW);
  if (!*module)
    fprintf(stderr, "%s\n", dlerror());
  return *module ? 0 : 200;
}
int cuModuleLoadDataEx(void **module, const void *path) { return cuModuleLoadData(module, path); }

// Maps a function launch_NAME to the function sizes_NAME.
static std::map<void *, std::vector<size_t> (*)(void)> sizes;

int cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = dlsym(module, ("launch_" + std::string(name)).c_str());
  if (*function)
    *(void **)&sizes[*function] = dlsym(module, ("sizes_" + std::string(name)).c_str());
  return *function ? 0 : 500;
}

// Values of CUgraphNodeType, CUmemorytype and CUresult.
enum { KERNEL, COPY, MEMSET };
enum { HOST_MEMORY = 1, DEVICE_MEMORY };
enum { UNSUPPORTED = 900, INVALIDATED = 901 };

// A node of a CUDA graph. `from` and `to` are the types of memory of a copy.
struct Node {
  int type, from, to;
  std::function<void()> work;
};
typedef std::vector<Node> Graph;

// The graph of the running capture, or null.
static Graph *captured;
static bool invalid;

// Run the work of a node, or record the node if a stream is captured.
static int run_or_record(Node node) {
  if (captured)
    captured->push_back(std::move(node));
  else
    node.work();
  return 0;
}

// Return the error of a function that a capture does not allow; return 0 without a capture.
static int refuse_in_capture(void) {
  invalid = invalid || captured;
  return captured ? UNSUPPORTED : 0;
}

// The emulated cuBLAS calls this function for each product. It takes ownership of `work`.
void cuEmulatorRunOrRecord(std::function<void()> *work) {
  run_or_record({KERNEL, 0, 0, std::move(*work)});
  delete work;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *, void **values, void **) {
  typedef void launch(const unsigned *, const unsigned *, void *const *, char *);
  std::vector<std::string> copies;
  for (size_t size : sizes[function]())
    copies.emplace_back((char *)values[copies.size()], size);
  return run_or_record({KERNEL, 0, 0, [=]() {
    const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
    static std::vector<double> memory;
    memory.resize(shared / sizeof(double) + 1);
    std::vector<void *> arguments;
    for (const std::string &copy : copies)
      arguments.push_back((void *)copy.data());
    ((launch *)function)(grid, block, arguments.data(), (char *)memory.data());
  }});
}

static int copy_memory(void *to, int to_type, const void *from, int from_type, size_t size) {
  return run_or_record({COPY, from_type, to_type, [=] { memmove(to, from, size); }});
}
int cuMemcpyDtoDAsync_v2(void *to, void *from, size_t size) {
  return copy_memory(to, DEVICE_MEMORY, from, DEVICE_MEMORY, size);
}
int cuMemcpyDtoHAsync_v2(void *to, void *from, size_t size) {
  return copy_memory(to, HOST_MEMORY, from, DEVICE_MEMORY, size);
}
int cuMemcpyHtoDAsync_v2(void *to, void *from, size_t size) {
  return copy_memory(to, DEVICE_MEMORY, from, HOST_MEMORY, size);
}
int cuMemcpyHtoD_v2(void *to, void *from, size_t size) {
  int error = refuse_in_capture();
  return error ? error : copy_memory(to, DEVICE_MEMORY, from, HOST_MEMORY, size);
}
int cuMemsetD8Async(void *to, unsigned char value, size_t size) {
  return run_or_record({MEMSET, 0, 0, [=] { memset(to, value, size); }});
}
int cuStreamSynchronize(void *) { return refuse_in_capture(); }
int cuEventSynchronize(void *) { return refuse_in_capture(); }

int cuStreamBeginCapture_v2(void *, int) {
  invalid = false;
  captured = new Graph;
  return 0;
}
int cuStreamEndCapture(void *, Graph **graph) {
  *graph = invalid ? nullptr : captured;
  captured = nullptr;
  return invalid ? INVALIDATED : 0;
}
int cuGraphGetNodes(Graph *graph, Node **nodes, size_t *count) {
  for (size_t i = 0; nodes && i < *count; i++)
    nodes[i] = &(*graph)[i];
  *count = graph->size();
  return 0;
}
int cuGraphNodeGetType(Node *node, int *type) { return *type = node->type, 0; }
// Set the two types of memory in a CUDA_MEMCPY3D.
int cuGraphMemcpyNodeGetParams(Node *node, char *copy) {
  *(int *)(copy + 32) = node->from;
  *(int *)(copy + 120) = node->to;
  return 0;
}
int cuGraphInstantiateWithFlags(Graph **executable, Graph *graph, unsigned long long) {
  *executable = new Graph(*graph);
  return 0;
}
int cuGraphDestroy(Graph *graph) { return delete graph, 0; }
int cuGraphExecDestroy(Graph *graph) { return delete graph, 0; }
int cuGraphLaunch(Graph *graph, void *) {
  for (const Node &node : *graph)
    node.work();
  return 0;
}

#elif defined NVRTC

struct Program {
  std::string source, header, path, log;
};

int nvrtcVersion(int *major, int *minor) { return *major = 13, *minor = 0, 0; }
const char *nvrtcGetErrorString(int error) { return error ? "NVRTC_ERROR_COMPILATION" : ""; }
int nvrtcCreateProgram(Program **program, const char *source, const char *, int count,
                       const char **headers, const char **) {
  *program = new Program{source, count ? headers[0] : "", "", ""};
  return 0;
}
int nvrtcDestroyProgram(Program **program) {
  delete *program;
  return 0;
}

// Return C++ code for g++ from a program's source and header. For each kernel NAME, the code has the
// functions launch_NAME, which cuLaunchKernel calls, and sizes_NAME, which returns the sizes of the
// kernel's arguments.
static std::string translate(const Program &program) {
  const char *include = "#include \"cluda.h\"";
  std::string source = program.source;
  for (size_t at; (at = source.find(include)) != std::string::npos;)
    source.erase(at, strlen(include));
  std::string code = program.header + "\n" + source + "\n";
  // Code for float16 contains inline PTX, which g++ cannot compile: abort() replaces it.
  code = std::regex_replace(code, std::regex("asm\\([^\n]*"), "abort();");
  code = std::regex_replace(code, std::regex("(^|\n)__device__ "), "$1static __device__ ");
  code = std::regex_replace(
      code, std::regex("extern\\s+__shared__\\s+([\\w ]+?)\\s+(\\w+)\\[\\]"),
      "$1 *$2 = ($1 *)shared_memory");
  bool barriers = source.find("__syncthreads") != std::string::npos ||
                  source.find("local_barrier") != std::string::npos;
  std::string translation = std::string("#include \"") + getenv("EMULATOR_HEADER") + "\"\n" + code;
  std::regex kernel("(^|[^_\\w])(KERNEL|__global__)\\s+void\\s+(\\w+)\\s*\\(");
  std::set<std::string> names;
  for (std::sregex_iterator it(source.begin(), source.end(), kernel), end; it != end; ++it)
    names.insert((*it)[3]);
  for (const std::string &name : names)
    translation += "extern \"C\" void launch_" + name +
             "(const unsigned *g, const unsigned *b, void *const *v, char *m) {\n"
             "  run(g, b, v, m, [] { call(" + name + "); }, " + (barriers ? "true" : "false") +
             ");\n}\nextern \"C\" std::vector<size_t> sizes_" + name + "(void) { return sizes(" + name + "); }\n";
  return translation;
}

// Compile a program into a shared library, unless the folder already contains it. The file's name is a
// hash of the code. rename makes the file visible only when it is complete.
int nvrtcCompileProgram(Program *program, int, const char **) {
  std::string code = translate(*program);
  std::string stem =
      std::string(getenv("EMULATOR")) + "/" + std::to_string(std::hash<std::string>()(code));
  program->path = stem + ".so";
  if (access(program->path.c_str(), R_OK)) {
    std::ofstream(stem + ".cpp") << code;
    std::string output = stem + "." + std::to_string(getpid());
    std::string command = "env -u LD_PRELOAD -u LD_AUDIT g++ -std=c++17 -shared -fPIC -static-libstdc++ -static-libgcc -O1 -w "
                          "-fpermissive -ffp-contract=off -o " +
                          output + " " + stem + ".cpp 2> " + output + ".log";
    int status = system(command.c_str());
    std::ifstream log(output + ".log");
    program->log.assign(std::istreambuf_iterator<char>(log), {});
    unlink((output + ".log").c_str());
    if (status) {
      fputs(program->log.c_str(), stderr);
      return 6;
    }
    rename(output.c_str(), program->path.c_str());
  }
  return 0;
}
int nvrtcGetPTXSize(Program *program, size_t *size) {
  *size = program->path.size() + 1;
  return 0;
}
int nvrtcGetPTX(Program *program, char *out) {
  strcpy(out, program->path.c_str());
  return 0;
}
int nvrtcGetProgramLogSize(Program *program, size_t *size) {
  *size = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program *program, char *out) {
  strcpy(out, program->log.c_str());
  return 0;
}

#elif defined CUBLAS

// Return a function of the CBLAS library.
static void *find(const char *name) {
  static void *library = dlopen(getenv("CBLAS"), RTLD_NOW);
  return dlsym(library, name);
}
// Run work of cuBLAS, or record it if the driver captures a stream.
static int run_or_record(std::function<void()> work) {
  typedef void function(std::function<void()> *);
  static function *driver = (function *)dlsym(RTLD_DEFAULT, "cuEmulatorRunOrRecord");
  driver(new std::function<void()>(std::move(work)));
  return 0;
}
// CblasColMajor and CblasNoTrans of cblas.h. cuBLAS numbers operations from 0 for no transposition.
enum { COLUMNS = 102, PLAIN = 111 };

#define PRODUCTS(T, type, letter)                                                                  \
  static void letter##gemm(int ta, int tb, int m, int n, int k, type alpha, const type *a, int lda, \
                           const type *b, int ldb, type beta, type *c, int ldc) {                  \
    typedef void gemm(int, int, int, int, int, int, type, const type *, int, const type *, int,    \
                      type, type *, int);                                                          \
    ((gemm *)find("cblas_" #letter "gemm"))(COLUMNS, PLAIN + ta, PLAIN + tb, m, n, k, alpha, a,    \
                                            lda, b, ldb, beta, c, ldc);                            \
  }                                                                                                \
  int cublas##T##gemm_v2(void *, int ta, int tb, int m, int n, int k, const type *alpha,           \
                         const type *a, int lda, const type *b, int ldb, const type *beta,         \
                         type *c, int ldc) {                                                       \
    type x = *alpha, y = *beta;                                                                    \
    return run_or_record([=] { letter##gemm(ta, tb, m, n, k, x, a, lda, b, ldb, y, c, ldc); });    \
  }                                                                                                \
  int cublas##T##gemmBatched(void *, int ta, int tb, int m, int n, int k, const type *alpha,       \
                             const type *const *a, int lda, const type *const *b, int ldb,         \
                             const type *beta, type *const *c, int ldc, int count) {               \
    type x = *alpha, y = *beta;                                                                    \
    return run_or_record([=] {                                                                     \
      for (int i = 0; i < count; i++)                                                              \
        letter##gemm(ta, tb, m, n, k, x, a[i], lda, b[i], ldb, y, c[i], ldc);                      \
    });                                                                                            \
  }                                                                                                \
  int cublas##T##gemmStridedBatched(void *, int ta, int tb, int m, int n, int k,                   \
                                    const type *alpha, const type *a, int lda, long long stride_a, \
                                    const type *b, int ldb, long long stride_b, const type *beta,  \
                                    type *c, int ldc, long long stride_c, int count) {             \
    type x = *alpha, y = *beta;                                                                    \
    return run_or_record([=] {                                                                     \
      for (int i = 0; i < count; i++)                                                              \
        letter##gemm(ta, tb, m, n, k, x, a + i * stride_a, lda, b + i * stride_b, ldb, y,          \
                     c + i * stride_c, ldc);                                                       \
    });                                                                                            \
  }                                                                                                \
  int cublas##T##gemv_v2(void *, int t, int m, int n, const type *alpha, const type *a, int lda,   \
                         const type *x, int incx, const type *beta, type *y, int incy) {           \
    typedef void gemv(int, int, int, int, type, const type *, int, const type *, int, type,        \
                      type *, int);                                                                \
    type p = *alpha, q = *beta;                                                                    \
    return run_or_record([=] {                                                                     \
      ((gemv *)find("cblas_" #letter "gemv"))(COLUMNS, PLAIN + t, m, n, p, a, lda, x, incx, q, y,  \
                                              incy);                                               \
    });                                                                                            \
  }                                                                                                \
  int cublas##T##ger_v2(void *, int m, int n, const type *alpha, const type *x, int incx,          \
                        const type *y, int incy, type *a, int lda) {                               \
    typedef void ger(int, int, int, type, const type *, int, const type *, int, type *, int);      \
    type p = *alpha;                                                                               \
    return run_or_record([=] {                                                                     \
      ((ger *)find("cblas_" #letter "ger"))(COLUMNS, m, n, p, x, incx, y, incy, a, lda);           \
    });                                                                                            \
  }                                                                                                \
  int cublas##T##dot_v2(void *, int n, const type *x, int incx, const type *y, int incy,           \
                        type *out) {                                                               \
    typedef type dot(int, const type *, int, const type *, int);                                   \
    return run_or_record(                                                                          \
        [=] { *out = ((dot *)find("cblas_" #letter "dot"))(n, x, incx, y, incy); });               \
  }
PRODUCTS(S, float, s)
PRODUCTS(D, double, d)

#endif
}
