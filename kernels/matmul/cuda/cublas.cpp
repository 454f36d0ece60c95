#include "common/device/cuda_stream.hpp"
#include "kernels/matmul/cuda/cublas_library.hpp"
#include "kernels/matmul/matmul.hpp"

/// cuBLAS, as most programs call it: cublasGemmStridedBatchedEx.
namespace feedrate::ladder::cublas {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;  // bytes; what NVIDIA recommends for this GPU

cudaDataType type_of(Element element) {
  return element == Element::bf16 ? CUDA_R_16BF : element == Element::fp16 ? CUDA_R_16F : CUDA_R_32F;
}

class Cublas final : public Matmul {
 public:
  Cublas(const MatmulShape& shape, Device& device)
      : shape_(shape), workspace_(device.allocate_device(kWorkspace, Fresh::as_is)) {
    check(library_.create(&handle_), "cublasCreate");
  }
  ~Cublas() override { library_.destroy(handle_); }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  void queue(Stream& stream, const MatmulData& data) override {
    check(library_.set_stream(handle_, dynamic_cast<CudaStream&>(stream).get()), "cublasSetStream");
    check(library_.set_workspace(handle_, workspace_.data(), workspace_.size()), "cublasSetWorkspace");
    // cuBLAS counts in columns, so it computes the transposed product from the transposed matrices.
    const float zero = 0;
    const auto turned = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    const auto size = [](std::uint64_t count) { return static_cast<int>(count); };
    const auto row = [](const Matrix& matrix) { return static_cast<int>(std::max<std::size_t>(matrix.stride, 1)); };
    const auto apart = [](const Matrix& matrix) { return static_cast<long long>(matrix.rows * matrix.stride); };
    const auto type = type_of(shape_.element);
    check(library_.multiply(
              handle_, turned(right_is_transposed(shape_.layout)), turned(left_is_transposed(shape_.layout)),
              size(shape_.n), size(shape_.m), size(shape_.k), &shape_.scale, data.right.data, type, row(data.right),
              apart(data.right), data.left.data, type, row(data.left), apart(data.left), &zero, data.result.data,
              type_of(shape_.result_element()), row(data.result), apart(data.result), size(shape_.batch),
              shape_.element == Element::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
          "cublasGemmStridedBatchedEx");
  }

 private:
  const CublasLibrary& library_ = CublasLibrary::instance();
  MatmulShape shape_;
  Buffer workspace_;
  cublasHandle_t handle_ = nullptr;
};

const MatmulRegistration registered("cublas",
                                    {.text = {.changes = "NVIDIA's cuBLAS, cublasGemmStridedBatchedEx"},
                                     .unavailable = [] { return CublasLibrary::instance().missing; },
                                     .why_unsupported =
                                         [](const MatmulShape& shape, const DeviceInfo&) {
                                           if (shape.epilogue != Epilogue::none)
                                             return std::string("cuBLAS has no epilogue");
                                           return shape.element == Element::fp8
                                                      ? std::string("cuBLAS does not multiply fp8; cuBLASLt does")
                                                      : std::string();
                                         },
                                     .precision = library_precision,
                                     .make = [](const MatmulShape& shape, Device& device) -> std::unique_ptr<Matmul> {
                                       return std::make_unique<Cublas>(shape, device);
                                     }});

}  // namespace
}  // namespace feedrate::ladder::cublas
