#pragma once
#include <cublasLt.h>
#include <cublas_v2.h>

#include <string>

#include "common/error.hpp"
#include "kernels/matmul/peers/library.hpp"

namespace feedrate::ladder {

inline void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw Failure(std::string(call) + ": error " + std::to_string(status));
}

/// cuBLAS and cuBLASLt, loaded at run time: the toolkit's, or PyPI's nvidia-cublas.
struct CublasLibrary {
  static const CublasLibrary& instance() {
    static const CublasLibrary library;
    return library;
  }
  std::string missing;  ///< what to do if they could not be loaded; empty if they were

  decltype(cublasCreate_v2)* create = nullptr;
  decltype(cublasDestroy_v2)* destroy = nullptr;
  decltype(cublasSetStream_v2)* set_stream = nullptr;
  decltype(cublasSetWorkspace_v2)* set_workspace = nullptr;
  // cublasGemmStridedBatchedEx, which is overloaded in C++.
  cublasStatus_t (*multiply)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                             const void* alpha, const void* a, cudaDataType, int lda, long long, const void* b,
                             cudaDataType, int ldb, long long, const void* beta, void* c, cudaDataType, int ldc,
                             long long, int count, cublasComputeType_t, cublasGemmAlgo_t) = nullptr;

  decltype(cublasLtCreate)* lt_create = nullptr;
  decltype(cublasLtDestroy)* lt_destroy = nullptr;
  decltype(cublasLtMatmulDescCreate)* lt_describe = nullptr;
  decltype(cublasLtMatmulDescSetAttribute)* lt_set = nullptr;
  decltype(cublasLtMatmulDescDestroy)* lt_forget = nullptr;
  decltype(cublasLtMatrixLayoutCreate)* lt_layout = nullptr;
  decltype(cublasLtMatrixLayoutSetAttribute)* lt_set_layout = nullptr;
  decltype(cublasLtMatrixLayoutDestroy)* lt_forget_layout = nullptr;
  decltype(cublasLtMatmulPreferenceCreate)* lt_prefer = nullptr;
  decltype(cublasLtMatmulPreferenceSetAttribute)* lt_set_preference = nullptr;
  decltype(cublasLtMatmulPreferenceDestroy)* lt_forget_preference = nullptr;
  decltype(cublasLtMatmulAlgoGetHeuristic)* lt_heuristics = nullptr;
  decltype(cublasLtMatmul)* lt_multiply = nullptr;

 private:
  CublasLibrary() {
    const DynamicLibrary lt{"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13"};
    const DynamicLibrary blas{"libcublas.so.13", "libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so.13"};
    blas.find("cublasCreate_v2", create);
    blas.find("cublasDestroy_v2", destroy);
    blas.find("cublasSetStream_v2", set_stream);
    blas.find("cublasSetWorkspace_v2", set_workspace);
    blas.find("cublasGemmStridedBatchedEx", multiply);
    lt.find("cublasLtCreate", lt_create);
    lt.find("cublasLtDestroy", lt_destroy);
    lt.find("cublasLtMatmulDescCreate", lt_describe);
    lt.find("cublasLtMatmulDescSetAttribute", lt_set);
    lt.find("cublasLtMatmulDescDestroy", lt_forget);
    lt.find("cublasLtMatrixLayoutCreate", lt_layout);
    lt.find("cublasLtMatrixLayoutSetAttribute", lt_set_layout);
    lt.find("cublasLtMatrixLayoutDestroy", lt_forget_layout);
    lt.find("cublasLtMatmulPreferenceCreate", lt_prefer);
    lt.find("cublasLtMatmulPreferenceSetAttribute", lt_set_preference);
    lt.find("cublasLtMatmulPreferenceDestroy", lt_forget_preference);
    lt.find("cublasLtMatmulAlgoGetHeuristic", lt_heuristics);
    lt.find("cublasLtMatmul", lt_multiply);
    if (multiply == nullptr || lt_multiply == nullptr) {
      missing = "cuBLAS is missing: install nvidia-cublas from PyPI and add its lib folder to LD_LIBRARY_PATH";
    }
  }
};

}  // namespace feedrate::ladder
