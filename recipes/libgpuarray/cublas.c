/* cuBLAS as libgpuarray 0.7.6 calls it. */
#include <cublas_api.h>

/* Since CUDA 11 the type to compute in is a cublasComputeType_t; libgpuarray, which multiplies
   float16 matrices with this function, passes a cudaDataType: CUDA_R_32F. */
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void *alpha,
                            const void *A, cudaDataType Atype, int lda, const void *B,
                            cudaDataType Btype, int ldb, const void *beta, void *C,
                            cudaDataType Ctype, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algo) {
  if ((int)compute == CUDA_R_32F)
    compute = CUBLAS_COMPUTE_32F;
  return cublasGemmEx_64(handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb,
                         beta, C, Ctype, ldc, compute, algo);
}
