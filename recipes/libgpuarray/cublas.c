/* Adapter from libgpuarray 0.7.6 to cuBLAS of CUDA 11 and newer.

   libgpuarray multiplies float16 matrices with cublasGemmEx. It passes the compute type as a
   cudaDataType. Since CUDA 11, cuBLAS expects a cublasComputeType_t. This file declares the
   enumerations as int, because NVIDIA's headers include headers that no wheel of the CUDA run time
   contains. */
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
