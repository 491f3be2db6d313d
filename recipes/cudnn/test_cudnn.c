/* The library is the headers' release, and makes a descriptor, which needs no device. */
#include <cudnn.h>
#include <stdio.h>

int main(void) {
  cudnnRNNDescriptor_t rnn;

  if (cudnnGetVersion() != CUDNN_VERSION) {
    fprintf(stderr, "headers of %d, library of %zu\n", CUDNN_VERSION, cudnnGetVersion());
    return 1;
  }
  /* In libcudnn_adv, which this call opens. */
  return cudnnCreateRNNDescriptor(&rnn) || cudnnDestroyRNNDescriptor(rnn);
}
