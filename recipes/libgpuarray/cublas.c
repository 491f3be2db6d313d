/* cuBLAS as libgpuarray 0.7.6 calls it.

   Since CUDA 11 the type to compute in is a cublasComputeType_t; libgpuarray, which multiplies
   float16 matrices with cublasGemmEx, passes a cudaDataType. The enumerations are declared as int
   here: NVIDIA's headers include others that no wheel of CUDA's run time has. */
#include <stdint.h>

enum { CUDA_R_32F = 0, CUBLAS_COMPUTE_32F = 68 };

int cublasGemmEx_64(void *handle, int transa, int transb, int64_t m, int64_t n, int64_t k,
                    const void *alpha, const void *A, int Atype, int64_t lda, const void *B,
                    int Btype, int64_t ldb, const void *beta, void *C, int Ctype, int64_t ldc,
                    int compute, int algo);

int cublasGemmEx(void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                 const void *A, int Atype, int lda, const void *B, int Btype, int ldb,
                 const void *beta, void *C, int Ctype, int ldc, int compute, int algo) {
  return cublasGemmEx_64(handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb,
                         beta, C, Ctype, ldc,
                         compute == CUDA_R_32F ? CUBLAS_COMPUTE_32F : compute, algo);
}
