/* The rungs of the ladder matmul (kernels/matmul) for programs in C and in other languages. The Python package loads this
 * library for feedrate.kernels.matmul. */
#ifndef FEEDRATE_KERNELS_H
#define FEEDRATE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* C = gelu(scale × A × B + bias), each part as far as it is given, for a batch of row-major matrices without padding. All
 * memory is on the device, and on GPUs begins at multiples of 16 bytes. */
typedef struct {
  const char* rung;    /* a rung of the device, or a library: "tma_store", "cublaslt", "cpu_packed"; see feedrate_rungs() */
  const char* device;  /* "cuda" or "cpu" */
  unsigned index;      /* CUDA index of the GPU */
  const char* dtype;   /* of A and B: "fp32", "tf32", "bf16", "fp16" or "fp8" (e4m3). C has the same type, but fp32 for tf32,
                          and bf16 for fp8 */
  const char* layout;  /* "nn", "nt", "tn" or "tt": A is stored as m × k (n) or k × m (t), B as k × n (n) or n × k (t) */
  uint64_t m, n, k, batch;
  const void *left, *right;
  void* result;
  const float* bias; /* n elements, or null */
  float scale;
  int gelu;     /* not 0: gelu in its tanh form; needs a bias */
  void* stream; /* a cudaStream_t; null: the legacy default stream */
  int wait;     /* not 0: return when the result is complete. On the CPU device it always is */
} feedrate_product;

/* Queues a product. Returns 0; 1 if the device, the memory or a library failed; or 2 if an argument is invalid. Then `error`
 * receives a message of at most `room` bytes. May be called from several threads. */
int feedrate_matmul(const feedrate_product*, char* error, size_t room);

/* Writes one line per rung and library, by step: name, device, step (0 for a library), why it is unavailable, and what it
 * changes, separated by tabs. Returns the number of bytes with the final 0, and writes as much of it as fits. */
size_t feedrate_rungs(char* text, size_t room);

#ifdef __cplusplus
}
#endif
#endif
