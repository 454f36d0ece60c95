#include "kernels/matmul/cuda/python_matmul.hpp"

#include <fmt/format.h>

#include "common/device/cuda_stream.hpp"
#include "kernels/ladder/python_peer.hpp"

namespace feedrate::ladder {
namespace {

class PythonMatmul final : public Matmul {
 public:
  PythonMatmul(const std::string& module, const MatmulShape& shape)
      : peer_(module, fmt::format("'{}', {:d}, {:d}", text_of(shape.element), left_is_transposed(shape.layout),
                                  right_is_transposed(shape.layout))) {}
  void queue(Stream& stream, const MatmulData& data) override {
    const auto address = reinterpret_cast<std::uintptr_t>(dynamic_cast<CudaStream&>(stream).get());
    peer_.call("queue", fmt::format("{}, {}, {}, {}", address, python_text(data.left), python_text(data.right),
                                    python_text(data.result)));
  }
  std::map<std::string, std::string> chosen() const override { return peer_.chosen(); }

 private:
  PythonPeer peer_;
};

}  // namespace

MatmulRung python_matmul(const std::string& module, const std::string& package, const std::string& changes,
                         std::function<std::string(const MatmulShape&, const DeviceInfo&)> why_unsupported) {
  return {.text = {.changes = changes},
          .unavailable =
              [package] {
                return first_of({PythonPeer::missing("torch"), PythonPeer::missing(package)});
              },
          .why_unsupported = [own = std::move(why_unsupported)](const MatmulShape& shape,
                                                                const DeviceInfo& device) -> std::string {
            if (shape.epilogue != Epilogue::none) {
              return fmt::format("--epilogue {}: the peers in Python compute none", text_of(shape.epilogue));
            }
            if (shape.scale != 1) return fmt::format("--scale {}: the peers in Python compute 1", shape.scale);
            if (shape.element == Element::fp8 && device.capability < 89) {
              return "fp8 needs compute capability 8.9 or more";
            }
            return own(shape, device);
          },
          .precision = library_precision,
          .make = [module](const MatmulShape& shape, Device&) -> std::unique_ptr<Matmul> {
            return std::make_unique<PythonMatmul>(module, shape);
          }};
}

}  // namespace feedrate::ladder
