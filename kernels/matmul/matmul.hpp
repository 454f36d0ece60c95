#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ladder/ladder.hpp"

/// The ladder of matrix products: C = gelu(scale × A × B + bias), in rows, in a batch.
namespace feedrate::ladder {

/// How A and B lie in memory: `n` in rows, `t` transposed. A is m × k, B is k × n. In `nt`, the layout of a linear
/// layer, consecutive elements of both belong to consecutive k.
enum class Layout : std::uint8_t { nn, nt, tn, tt };
inline bool left_is_transposed(Layout layout) { return layout == Layout::tn || layout == Layout::tt; }
inline bool right_is_transposed(Layout layout) { return layout == Layout::nt || layout == Layout::tt; }
std::string text_of(Layout);
/// Throws BadInput naming `layout`.
Layout layout_of(const std::string& name);

enum class Epilogue : std::uint8_t { none, bias, bias_gelu };
std::string text_of(Epilogue);

/// A product's sizes in elements. C has the type of A and B, but fp32 for tf32, and bf16 for fp8.
struct MatmulShape {
  std::uint64_t m = 0, n = 0, k = 0, batch = 1;
  std::uint64_t pad = 0;  ///< elements between the rows of each matrix that belong to no matrix
  Element element = Element::fp32;
  Layout layout = Layout::nt;
  Epilogue epilogue = Epilogue::none;
  float scale = 1;

  Element result_element() const {
    return element == Element::tf32 ? Element::fp32 : element == Element::fp8 ? Element::bf16 : element;
  }
  Matrix left() const;  ///< without memory
  Matrix right() const;
  Matrix result() const;
};

/// The matrices of one product. `bias` has n elements. `before_gelu`, if it has data, has the result's shape and
/// receives the values before gelu; rungs with an epilogue fill it, libraries do not.
struct MatmulData {
  Matrix left, right, result;
  const float* bias = nullptr;
  Matrix before_gelu = {};
};

/// Prepared for one shape: queues products of that shape.
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual void queue(Stream&, const MatmulData&) = 0;
  virtual std::optional<KernelResources> resources(const MatmulData&) { return {}; }
  virtual std::map<std::string, std::string> chosen() const { return {}; }
};

/// A rung or a peer.
struct MatmulRung {
  RungText text;
  std::function<std::string()> unavailable = [] { return std::string(); };
  /// Why it does not compute a product of this shape here; empty if it does.
  std::function<std::string(const MatmulShape&, const DeviceInfo&)> why_unsupported;
  std::function<Precision(const MatmulShape&)> precision = [](const MatmulShape& shape) {
    return shape.element == Element::fp32 ? Precision{.sum = 0x1p-24} : Precision{};
  };
  std::function<std::unique_ptr<Matmul>(const MatmulShape&, Device&)> make;
};
using MatmulRungs = Registry<MatmulRung>;
using MatmulRegistration = Registration<MatmulRung>;

inline const Launchable& launchable(const Launchable& launch) { return launch; }
inline const Launchable& launchable(const std::unique_ptr<Launchable>& launch) { return *launch; }

/// A rung whose products are one launch each: `launch(shape, data)` returns it, or a pointer to it. `early`: it is
/// launched while the kernels before it may still run, and itself waits for them.
template <class Launch>
std::function<std::unique_ptr<Matmul>(const MatmulShape&, Device&)> launched(Launch launch, bool early = false) {
  class Launched final : public Matmul {
   public:
    Launched(const MatmulShape& shape, Device& device, Launch launch, bool early)
        : shape_(shape), device_(device), launch_(std::move(launch)), early_(early) {}
    void queue(Stream& stream, const MatmulData& data) override {
      const auto launch = launch_(shape_, data);
      early_ ? stream.launch_early(launchable(launch)) : stream.launch(launchable(launch));
    }
    std::optional<KernelResources> resources(const MatmulData& data) override {
      return device_.resources(launchable(launch_(shape_, data)));
    }

   private:
    MatmulShape shape_;
    Device& device_;
    Launch launch_;
    bool early_;
  };
  return [launch, early](const MatmulShape& shape, Device& device) {
    return std::make_unique<Launched>(shape, device, launch, early);
  };
}

/// Precision of the vendor's libraries, which sum in fp32, but fp8 in about 14 bits.
Precision library_precision(const MatmulShape&);

/// Conditions of a rung on a shape. Each returns the reason why it does not hold, or an empty string.
std::string needs_elements(const MatmulShape&, const std::string& rung, std::vector<Element> allowed);
std::string needs_layouts(const MatmulShape&, const std::string& rung, std::vector<Layout> allowed);
/// Rows of A, B and C must begin at multiples of this many bytes.
std::string needs_alignment(const MatmulShape&, const std::string& rung, unsigned bytes);
/// The first reason that is not empty.
std::string first_of(std::vector<std::string> reasons);

}  // namespace feedrate::ladder
