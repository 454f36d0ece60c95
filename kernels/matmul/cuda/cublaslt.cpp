#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "common/device/cuda_stream.hpp"
#include "kernels/matmul/cuda/cublas_library.hpp"
#include "kernels/matmul/matmul.hpp"

/// cuBLASLt with the algorithm that its heuristics name first, and with the fastest of those that they name.
namespace feedrate::ladder::cublaslt {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;  // bytes; what NVIDIA recommends for this GPU
constexpr int kCandidates = 32;

cudaDataType type_of(Element element) {
  switch (element) {
    case Element::bf16:
      return CUDA_R_16BF;
    case Element::fp16:
      return CUDA_R_16F;
    case Element::fp8:
      return CUDA_R_8F_E4M3;
    default:
      return CUDA_R_32F;
  }
}

template <class T>
using Handle = std::unique_ptr<std::remove_pointer_t<T>, cublasStatus_t (*)(T)>;

class CublasLt final : public Matmul {
 public:
  /// `tries`: number of algorithms to try when the first product is queued; 1: the heuristics' first one.
  CublasLt(const MatmulShape& shape, Device& device, int tries)
      : shape_(shape), device_(device), tries_(tries), workspace_(device.allocate_device(kWorkspace, Fresh::as_is)) {
    cublasLtHandle_t handle = nullptr;
    check(library_.lt_create(&handle), "cublasLtCreate");
    handle_.reset(handle);
    cublasLtMatmulDesc_t product = nullptr;
    check(library_.lt_describe(
              &product, shape.element == Element::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    product_.reset(product);
    // cuBLASLt counts in columns, so it computes the transposed product from the transposed matrices.
    set(CUBLASLT_MATMUL_DESC_TRANSA, right_is_transposed(shape.layout) ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, left_is_transposed(shape.layout) ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (shape.epilogue != Epilogue::none) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE,
          shape.epilogue == Epilogue::bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_GELU_BIAS);
    }
    right_ = layout_of(shape.right());
    left_ = layout_of(shape.left());
    result_ = layout_of(shape.result());
    find_algorithms();
  }

  void queue(Stream& stream, const MatmulData& data) override {
    if (tries_ > 1) choose(data);
    multiply(dynamic_cast<CudaStream&>(stream).get(), data, found_[chosen_].algo);
  }
  std::map<std::string, std::string> chosen() const override {
    return {{"algorithm", std::to_string(chosen_ + 1) + " of " + std::to_string(found_.size()) + " that were found"},
            {"fast_accumulation", "no"}};
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t name, const T& value) {
    check(library_.lt_set(product_.get(), name, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }
  Handle<cublasLtMatrixLayout_t> layout_of(const Matrix& matrix) const {
    cublasLtMatrixLayout_t layout = nullptr;
    check(library_.lt_layout(&layout, type_of(matrix.element), matrix.columns, matrix.rows,
                             static_cast<std::int64_t>(matrix.stride)),
          "cublasLtMatrixLayoutCreate");
    Handle<cublasLtMatrixLayout_t> kept(layout, library_.lt_forget_layout);
    const int count = static_cast<int>(matrix.batch);
    const auto apart = static_cast<std::int64_t>(matrix.rows * matrix.stride);
    check(library_.lt_set_layout(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "batch count");
    check(library_.lt_set_layout(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart, sizeof apart),
          "distance of the matrices in a batch");
    return kept;
  }
  void find_algorithms() {
    cublasLtMatmulPreference_t preference = nullptr;
    check(library_.lt_prefer(&preference), "cublasLtMatmulPreferenceCreate");
    const Handle<cublasLtMatmulPreference_t> kept(preference, library_.lt_forget_preference);
    const std::size_t bytes = workspace_.size();
    check(library_.lt_set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes),
          "workspace");
    found_.resize(kCandidates);
    int count = 0;
    check(library_.lt_heuristics(handle_.get(), product_.get(), right_.get(), left_.get(), result_.get(), result_.get(),
                                 preference, kCandidates, found_.data(), &count),
          "cublasLtMatmulAlgoGetHeuristic");
    found_.resize(static_cast<std::size_t>(count));
    if (found_.empty()) throw Failure("cuBLASLt found no algorithm for this product");
  }
  void multiply(cudaStream_t stream, const MatmulData& data, const cublasLtMatmulAlgo_t& algorithm) {
    if (data.bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, data.bias);
    const float zero = 0;
    check(library_.lt_multiply(handle_.get(), product_.get(), &shape_.scale, data.right.data, right_.get(),
                               data.left.data, left_.get(), &zero, data.result.data, result_.get(), data.result.data,
                               result_.get(), &algorithm, workspace_.data(), workspace_.size(), stream),
          "cublasLtMatmul");
  }
  /// Times the algorithms that were found, five times each, and keeps the one with the lowest median.
  void choose(const MatmulData& data) {
    constexpr int kTimings = 5;
    const auto stream = device_.stream();
    const auto begin = device_.event(true), end = device_.event(true);
    double best = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(found_.size(), static_cast<std::size_t>(tries_)); ++i) {
      std::array<double, kTimings> times{};
      for (double& each : times) {
        stream->record(*begin);
        multiply(dynamic_cast<CudaStream&>(*stream).get(), data, found_[i].algo);
        stream->record(*end);
        stream->synchronize();
        each = end->ns_since(*begin);
      }
      std::ranges::sort(times);
      if (best != 0 && times[kTimings / 2] >= best) continue;
      best = times[kTimings / 2];
      chosen_ = i;
    }
    tries_ = 1;
  }

  const CublasLibrary& library_ = CublasLibrary::instance();
  MatmulShape shape_;
  Device& device_;
  int tries_;
  Buffer workspace_;
  Handle<cublasLtHandle_t> handle_{nullptr, library_.lt_destroy};
  Handle<cublasLtMatmulDesc_t> product_{nullptr, library_.lt_forget};
  Handle<cublasLtMatrixLayout_t> right_{nullptr, library_.lt_forget_layout},
      left_ = {nullptr, library_.lt_forget_layout}, result_ = {nullptr, library_.lt_forget_layout};
  std::vector<cublasLtMatmulHeuristicResult_t> found_;
  std::size_t chosen_ = 0;
};

std::string why_unsupported(const MatmulShape& shape, const DeviceInfo& device) {
  if (shape.epilogue != Epilogue::none && shape.result_element() != Element::fp32) {
    return "cuBLASLt adds a bias of the result's type, and this ladder's is fp32";
  }
  if (shape.k == 0) return "cuBLASLt needs a k above 0";
  if (shape.element != Element::fp8) return "";
  if (device.capability < 89) return "fp8 needs compute capability 8.9 or more";
  return first_of({needs_layouts(shape, "cublaslt", {Layout::nt}), needs_alignment(shape, "cublaslt", 16)});
}

MatmulRung peer(const char* text, int tries) {
  return {.text = {.changes = text},
          .unavailable = [] { return CublasLibrary::instance().missing; },
          .why_unsupported = why_unsupported,
          .precision = library_precision,
          .make = [tries](const MatmulShape& shape, Device& device) -> std::unique_ptr<Matmul> {
            return std::make_unique<CublasLt>(shape, device, tries);
          }};
}

const MatmulRegistration registered{
    {"cublaslt", peer("NVIDIA's cuBLASLt with the algorithm that its heuristics name first", 1)},
    {"cublaslt_best", peer("NVIDIA's cuBLASLt with the fastest of up to 32 algorithms", kCandidates)}};

}  // namespace
}  // namespace feedrate::ladder::cublaslt
