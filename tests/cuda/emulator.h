/* Definitions of CUDA's keywords and functions, with which g++ compiles kernels for the
   CPU. emulator.cpp includes this file before each kernel's source.

   The threads of a block run one after another, in one thread of the CPU. In a kernel
   with barriers, each CUDA thread is a fiber. A fiber that reaches a barrier is suspended
   until all fibers of the block have reached it. */
#include <math.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __restrict__

using std::abs;
template <class A, class B> typename std::common_type<A, B>::type max(A a, B b) {
  typedef typename std::common_type<A, B>::type T;
  return (T)a < (T)b ? (T)b : (T)a;
}
template <class A, class B> typename std::common_type<A, B>::type min(A a, B b) {
  typedef typename std::common_type<A, B>::type T;
  return (T)b < (T)a ? (T)b : (T)a;
}
static inline float __int_as_float(int bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline double __longlong_as_double(long long bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline long long __double_as_longlong(double x) {
  long long bits;
  memcpy(&bits, &x, sizeof x);
  return bits;
}
template <class T, class V> T atomicAdd(T *address, V value) {
  T old = *address;
  *address = old + value;
  return old;
}
template <class T, class V> T atomicExch(T *address, V value) {
  T old = *address;
  *address = value;
  return old;
}
template <class T, class C, class V> T atomicCAS(T *address, C compare, V value) {
  T old = *address;
  if (old == compare)
    *address = value;
  return old;
}
static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  unsigned long long both = x | (unsigned long long)y << 32;
  unsigned result = 0;
  for (int i = 0; i < 4; i++)
    result |= (both >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
  return result;
}

struct dim3 {
  unsigned x, y, z;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;
static char *shared_memory;

// A fiber. makecontext prepares its first start. Afterwards, _setjmp and _longjmp suspend and
// resume it, because swapcontext would need system calls.
struct Fiber {
  ucontext_t start;
  jmp_buf resume_point;
  bool started, ended;
};
static jmp_buf scheduler;
static Fiber *running;

// Suspend the running fiber and return to the scheduler, run_fibers.
static inline void __syncthreads(void) {
  dim3 thread = threadIdx;
  if (!_setjmp(running->resume_point))
    _longjmp(scheduler, 1);
  threadIdx = thread;
}

// The addresses of the kernel's arguments, as cuLaunchKernel receives them.
static void *const *arguments;

// Call a kernel with its arguments, whose types A are known from its signature.
template <class... A, size_t... I>
void call_with(void (*kernel)(A...), std::index_sequence<I...>) {
  kernel(*(typename std::remove_cv<A>::type *)arguments[I]...);
}
template <class... A> void call(void (*kernel)(A...)) {
  call_with(kernel, std::index_sequence_for<A...>());
}

// Return the sizes of a kernel's arguments, in bytes.
template <class... A> std::vector<size_t> sizes(void (*)(A...)) { return {sizeof(A)...}; }

// The function that runs the kernel for one CUDA thread.
static void (*body)(void);

// The main function of a fiber: run the kernel, return to the scheduler, and start again when the
// fiber is resumed for a thread of the next block.
static void start_fiber(void) {
  for (;;) {
    body();
    running->ended = true;
    if (!_setjmp(running->resume_point))
      _longjmp(scheduler, 1);
  }
}

// Call a function for each index of a grid or a block of a size.
template <class F> void for_each(dim3 size, dim3 &index, F function) {
  for (index.z = 0; index.z < size.z; index.z++)
    for (index.y = 0; index.y < size.y; index.y++)
      for (index.x = 0; index.x < size.x; index.x++)
        function();
}

// Start or resume a fiber; return when it reaches a barrier or the kernel's end.
static void resume(Fiber *fiber) {
  running = fiber;
  if (_setjmp(scheduler))
    return;
  if (fiber->started)
    _longjmp(fiber->resume_point, 1);
  fiber->started = true;
  setcontext(&fiber->start);
}

// Run all threads of a block as fibers. Resume each fiber in turn until all have ended.
static void run_fibers(void) {
  enum { STACK = 1 << 16 };
  static std::vector<Fiber *> fibers;
  std::vector<dim3> threads;
  for_each(blockDim, threadIdx, [&] { threads.push_back(threadIdx); });
  while (fibers.size() < threads.size()) {
    Fiber *fiber = new Fiber;
    getcontext(&fiber->start);
    fiber->start.uc_stack.ss_sp = malloc(STACK);
    fiber->start.uc_stack.ss_size = STACK;
    makecontext(&fiber->start, start_fiber, 0);
    fiber->started = false;
    fibers.push_back(fiber);
  }
  for (size_t i = 0; i < threads.size(); i++)
    fibers[i]->ended = false;
  for (size_t n_running = threads.size(); n_running > 0;)
    for (size_t i = 0; i < threads.size(); i++)
      if (!fibers[i]->ended) {
        threadIdx = threads[i];
        resume(fibers[i]);
        n_running -= fibers[i]->ended;
      }
}

// Run a kernel for all threads of a grid. `values` are the addresses of its arguments, and `memory`
// is its shared memory.
static void run(const unsigned *grid, const unsigned *block, void *const *values, char *memory,
                void (*kernel)(void), bool barriers) {
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  arguments = values;
  shared_memory = memory;
  body = kernel;
  for_each(gridDim, blockIdx, [&] {
    if (barriers)
      run_fibers();
    else
      for_each(blockDim, threadIdx, [&] { body(); });
  });
}
