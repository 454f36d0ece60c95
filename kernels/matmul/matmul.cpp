#include "kernels/matmul/matmul.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/error.hpp"

namespace feedrate::ladder {
namespace {

constexpr const char* kLayouts[] = {"nn", "nt", "tn", "tt"};
constexpr const char* kEpilogues[] = {"none", "bias", "bias_gelu"};

template <class Enum, std::size_t count>
Enum value_of(const char* const (&names)[count], const std::string& name) {
  return static_cast<Enum>(std::ranges::find(names, name) - std::begin(names));
}
template <std::size_t count>
std::vector<std::string> list_of(const char* const (&names)[count]) {
  return {std::begin(names), std::end(names)};
}

Matrix matrix_of(std::uint64_t rows, std::uint64_t columns, bool transposed, const MatmulShape& shape,
                 Element element) {
  if (transposed) std::swap(rows, columns);
  return {nullptr, element, rows, columns, columns + shape.pad, shape.batch};
}

struct MatmulOptions {
  std::uint64_t m = 1024, n = 1024, k = 1024, batch = 1, pad = 0;
  std::string dtype = "fp32", layout = "nt", epilogue = "none", inputs = "normal";
  double scale = 1;
};
constexpr double kMostElements = 1 << 20;
const Axes<MatmulOptions>& axes_of_matmul() {
  static const auto kAxes =
      Axes<MatmulOptions>()
          .number("m", &MatmulOptions::m, {0, kMostElements}, "rows of A and C")
          .number("n", &MatmulOptions::n, {0, kMostElements}, "columns of B and C")
          .number("k", &MatmulOptions::k, {0, kMostElements}, "columns of A and rows of B")
          .number("batch", &MatmulOptions::batch, {1, 65535}, "independent products per launch")
          .word("dtype", &MatmulOptions::dtype, element_names(), kDtypeHelp)
          .word("layout", &MatmulOptions::layout, list_of(kLayouts), "A and B in memory: n in rows, t transposed")
          .number("pad", &MatmulOptions::pad, {0, 4096}, "elements between the rows of each matrix that belong to none")
          .word("epilogue", &MatmulOptions::epilogue, list_of(kEpilogues), "what follows each sum of products")
          .number("scale", &MatmulOptions::scale, {-1e6, 1e6}, "factor of the product")
          .word("inputs", &MatmulOptions::inputs, input_names(), kInputsHelp);
  return kAxes;
}

MatmulShape shape_of(const MatmulOptions& options) {
  return {.m = options.m,
          .n = options.n,
          .k = options.k,
          .batch = options.batch,
          .pad = options.pad,
          .element = element_of(options.dtype),
          .layout = value_of<Layout>(kLayouts, options.layout),
          .epilogue = value_of<Epilogue>(kEpilogues, options.epilogue),
          .scale = static_cast<float>(options.scale)};
}

class MatmulProblem final : public Problem {
 public:
  MatmulProblem(const Values& values, Device& device)
      : shape_(shape_of(axes_of_matmul().of(values))),
        inputs_(ladder::inputs_of(axes_of_matmul().of(values).inputs)),
        device_(device),
        info_(device.info()) {}

  Work work() const override {
    const double products = static_cast<double>(shape_.batch) * static_cast<double>(shape_.m) *
                            static_cast<double>(shape_.n) * static_cast<double>(shape_.k);
    // Without results, nothing is read either.
    const auto inputs = shape_.result().bytes() == 0 ? 0 : shape_.left().bytes() + shape_.right().bytes();
    const auto bytes = static_cast<double>(inputs + shape_.result().bytes());
    return {2 * products, bytes, arithmetic_limit(shape_.element)};
  }
  std::size_t input_bytes() const override { return shape_.left().bytes() + shape_.right().bytes(); }
  std::size_t result_bytes() const override { return shape_.result().bytes() + shape_.n * sizeof(float); }

  std::string why_unsupported(const std::string& name) const override {
    const MatmulRung& rung = MatmulRungs::instance().get("--rung", name);
    if (rung.text.device != info_.kind) return fmt::format("rung {} runs with --device {}", name, rung.text.device);
    if (auto reason = rung.unavailable(); !reason.empty()) return reason;
    return rung.why_unsupported(shape_, info_);
  }

  void prepare(std::size_t copies, std::uint64_t seed) override {
    seed_ = mix64(seed);
    const auto stream = device_.stream();
    for (std::size_t copy = 0; copy < copies; ++copy) {
      lefts_.emplace_back(device_, shape_.left());
      rights_.emplace_back(device_, shape_.right());
      lefts_.back().poison(*stream);
      rights_.back().poison(*stream);
      fill(*stream, lefts_.back().matrix(), inputs_, seed_ + 2 * copy);
      fill(*stream, rights_.back().matrix(), inputs_, seed_ + 2 * copy + 1);
    }
    result_ = MatrixMemory(device_, shape_.result());
    bias_ = MatrixMemory(device_, {nullptr, Element::fp32, 1, shape_.n, shape_.n, 1});
    bias_.poison(*stream);
    fill(*stream, bias_.matrix(), inputs_, seed_ - 1);
    changed_ = device_.allocate_host(sizeof(std::uint64_t), HostMemory::pinned);
    stream->synchronize();
  }

  std::unique_ptr<Runner> make(const std::string& name) override {
    class MatmulRunner final : public Runner {
     public:
      MatmulRunner(MatmulProblem& problem, std::unique_ptr<Matmul> made) : problem_(problem), made_(std::move(made)) {}
      void queue(Stream& stream, std::size_t copy) override {
        if (!problem_.is_empty()) made_->queue(stream, problem_.data(copy));
      }
      std::optional<KernelResources> resources() override { return made_->resources(problem_.data(0)); }
      std::map<std::string, std::string> chosen() const override { return made_->chosen(); }

     private:
      MatmulProblem& problem_;
      std::unique_ptr<Matmul> made_;
    };
    return std::make_unique<MatmulRunner>(*this, MatmulRungs::instance().get("--rung", name).make(shape_, device_));
  }

  ProductVerdict verify(const std::string& name, Runner& runner, std::size_t copy) override {
    constexpr std::uint64_t kSamples = 2048;
    const auto stream = device_.stream();
    auto* const changed = reinterpret_cast<std::uint64_t*>(changed_.data());
    *changed = 0;
    result_.poison(*stream);
    runner.queue(*stream, copy);
    count_changed(*stream, result_, changed);
    count_different(*stream, lefts_[copy].matrix(), inputs_, seed_ + 2 * copy, changed);
    count_different(*stream, rights_[copy].matrix(), inputs_, seed_ + 2 * copy + 1, changed);
    const MatmulData data = this->data(copy);
    const Product product{.left = {data.left, left_is_transposed(shape_.layout)},
                          .right = {data.right, right_is_transposed(shape_.layout)},
                          .result = data.result,
                          .depth = shape_.k,
                          .bias = data.bias,
                          .gelu = shape_.epilogue == Epilogue::bias_gelu,
                          .scale = shape_.scale,
                          .inputs = inputs_};
    const Precision precision = MatmulRungs::instance().get("--rung", name).precision(shape_);
    ProductVerdict verdict = check_product(device_, *stream, product, precision, kSamples, copy);
    if (*changed != 0)
      verdict.wrong = fmt::format("{} bytes outside the result, or elements of the inputs, were changed", *changed);
    return verdict;
  }

 private:
  bool is_empty() const { return shape_.m * shape_.n == 0; }
  MatmulData data(std::size_t copy) const {
    const bool bias = shape_.epilogue != Epilogue::none;
    return {lefts_[copy].matrix(), rights_[copy].matrix(), result_.matrix(),
            bias ? reinterpret_cast<const float*>(bias_.matrix().data) : nullptr};
  }

  MatmulShape shape_;
  Inputs inputs_;
  std::uint64_t seed_ = 0;
  Device& device_;
  DeviceInfo info_;
  std::vector<MatrixMemory> lefts_, rights_;
  MatrixMemory result_, bias_;
  Buffer changed_;
};

const LadderRegistration registered("matmul",
                                    {.description = "matrix products, from naive to the library's speed",
                                     .axes = axes_of_matmul().list(),
                                     .rungs = [] { return rungs_of(MatmulRungs::instance()); },
                                     .make = [](const Values& values, Device& device) -> std::unique_ptr<Problem> {
                                       return std::make_unique<MatmulProblem>(values, device);
                                     }});

}  // namespace

std::string text_of(Layout layout) { return kLayouts[static_cast<std::size_t>(layout)]; }
Layout layout_of(const std::string& name) {
  if (std::ranges::find(kLayouts, name) == std::end(kLayouts)) throw BadInput("layout", name, "nn, nt, tn, tt");
  return value_of<Layout>(kLayouts, name);
}
std::string text_of(Epilogue epilogue) { return kEpilogues[static_cast<std::size_t>(epilogue)]; }

Matrix MatmulShape::left() const { return matrix_of(m, k, left_is_transposed(layout), *this, element); }
Matrix MatmulShape::right() const { return matrix_of(k, n, right_is_transposed(layout), *this, element); }
Matrix MatmulShape::result() const { return matrix_of(m, n, false, *this, result_element()); }

std::string needs_elements(const MatmulShape& shape, const std::string& rung, std::vector<Element> allowed) {
  if (std::ranges::find(allowed, shape.element) != allowed.end()) return "";
  std::string names;
  for (const Element each : allowed) names += (names.empty() ? "" : ", ") + text_of(each);
  return fmt::format("rung {} multiplies {}, not {}", rung, names, text_of(shape.element));
}
std::string needs_layouts(const MatmulShape& shape, const std::string& rung, std::vector<Layout> allowed) {
  if (std::ranges::find(allowed, shape.layout) != allowed.end()) return "";
  std::string names;
  for (const Layout each : allowed) names += (names.empty() ? "" : ", ") + text_of(each);
  return fmt::format("rung {} needs --layout {}, not {}", rung, names, text_of(shape.layout));
}
Precision library_precision(const MatmulShape& shape) {
  return {.sum = shape.element == Element::fp8 ? 0x1p-13 : 0x1p-22,
          .operand = shape.element == Element::tf32 ? 0x1p-10 : 0};
}

std::string needs_alignment(const MatmulShape& shape, const std::string& rung, unsigned bytes) {
  for (const Matrix& matrix : {shape.left(), shape.right(), shape.result()}) {
    if (matrix.stride * bytes_of(matrix.element) % bytes != 0) {
      return fmt::format(
          "rung {} needs rows that begin at multiples of {} bytes; one matrix has rows of {} elements and "
          "--pad {}",
          rung, bytes, matrix.columns, shape.pad);
    }
  }
  return "";
}
std::string first_of(std::vector<std::string> reasons) {
  for (std::string& reason : reasons) {
    if (!reason.empty()) return std::move(reason);
  }
  return "";
}

}  // namespace feedrate::ladder
