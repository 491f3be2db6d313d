/* Check that the library and the headers have the same version, and that a call without a GPU
   succeeds. */
#include <cudnn.h>
#include <stdio.h>

int main(void) {
  cudnnRNNDescriptor_t rnn;

  if (cudnnGetVersion() != CUDNN_VERSION) {
    fprintf(stderr, "the headers have version %d, the library has version %zu\n", CUDNN_VERSION, cudnnGetVersion());
    return 1;
  }
  /* This call loads libcudnn_adv, which defines the function. */
  return cudnnCreateRNNDescriptor(&rnn) || cudnnDestroyRNNDescriptor(rnn);
}
