#include "kernels/linear/linear.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace feedrate::ladder {
namespace {

constexpr const char* kPasses[] = {"forward", "backward_input", "backward_weight", "backward_bias", "all"};

struct LinearOptions {
  std::uint64_t rows = 1024, in = 1024, out = 1024;
  std::string dtype = "fp32", activation = "gelu", pass = "all", inputs = "normal";
};
constexpr double kMostPerSide = 1 << 20;
const Axes<LinearOptions>& axes_of_linear() {
  static const auto kAxes =
      Axes<LinearOptions>()
          .number("rows", &LinearOptions::rows, {1, kMostPerSide}, "inputs of a linear layer that are computed at once")
          .number("in-features", &LinearOptions::in, {1, kMostPerSide}, "elements of an input of a linear layer")
          .number("out-features", &LinearOptions::out, {1, kMostPerSide}, "elements of an output of a linear layer")
          .word("dtype", &LinearOptions::dtype, element_names(), kDtypeHelp)
          .word("activation", &LinearOptions::activation, {"gelu", "none"}, "what follows the product and the bias")
          .word("pass", &LinearOptions::pass, {std::begin(kPasses), std::end(kPasses)},
                "forward, a gradient, or all: a step of training")
          .word("inputs", &LinearOptions::inputs, input_names(), kInputsHelp);
  return kAxes;
}

class LinearProblem final : public Problem {
 public:
  LinearProblem(const Values& values, Device& device) : device_(device), info_(device.info()) {
    const LinearOptions options = axes_of_linear().of(values);
    shape_ = {.rows = options.rows,
              .in = options.in,
              .out = options.out,
              .element = element_of(options.dtype),
              .gelu = options.activation == "gelu",
              .pass = static_cast<Pass>(std::ranges::find(kPasses, options.pass) - std::begin(kPasses))};
    inputs_ = inputs_of(options.inputs);
  }

  Work work() const override {
    const double product =
        2.0 * static_cast<double>(shape_.rows) * static_cast<double>(shape_.in) * static_cast<double>(shape_.out);
    double products = 0, bytes = 0;
    const auto add = [&](Pass pass, std::initializer_list<Matrix> moved) {
      if (!shape_.computes(pass)) return;
      if (pass != Pass::backward_bias) products += 1;
      for (const Matrix& each : moved) bytes += static_cast<double>(each.bytes());
    };
    const Matrix x = shape_.x(), weight = shape_.weight(), y = shape_.y();
    add(Pass::forward, {x, weight, y, y});
    add(Pass::backward_input, {y, y, weight, x});
    add(Pass::backward_weight, {y, y, x, weight});
    add(Pass::backward_bias, {y, y});
    // The gradient of the bias is no product: an addition per element.
    const double operations =
        products > 0 ? products * product : static_cast<double>(shape_.rows) * static_cast<double>(shape_.out);
    return {operations, bytes, arithmetic_limit(shape_.element)};
  }
  std::size_t input_bytes() const override {
    return shape_.x().bytes() + shape_.weight().bytes() + 2 * shape_.y().bytes();
  }
  std::size_t result_bytes() const override {
    return shape_.x().bytes() + shape_.weight().bytes() + 2 * shape_.y().bytes() + shape_.partial().bytes();
  }
  std::string why_unsupported(const std::string& name) const override {
    const LinearRung& rung = LinearRungs::instance().get("--rung", name);
    if (rung.text.device != info_.kind) return fmt::format("rung {} runs with --device {}", name, rung.text.device);
    if (auto reason = rung.unavailable(); !reason.empty()) return reason;
    return rung.why_unsupported(shape_, info_);
  }

  void prepare(std::size_t copies, std::uint64_t seed) override {
    seed_ = seed;
    const auto stream = device_.stream();
    const auto filled = [&](const Matrix& matrix, Inputs inputs) {
      MatrixMemory memory(device_, matrix);
      memory.poison(*stream);
      fill(*stream, memory.matrix(), inputs, mix64(seed++));
      return memory;
    };
    // Values before gelu that a forward pass has left.
    const Inputs before = inputs_ == Inputs::zeros ? Inputs::zeros : Inputs::normal;
    for (std::size_t copy = 0; copy < copies; ++copy) {
      copies_.push_back({filled(shape_.x(), inputs_), filled(shape_.weight(), inputs_), filled(shape_.y(), inputs_),
                         filled(shape_.y(), before)});
    }
    bias_ = filled(shape_.bias(), inputs_);
    for (MatrixMemory* each : {&y_, &slope_}) *each = MatrixMemory(device_, shape_.y());
    gradient_x_ = MatrixMemory(device_, shape_.x());
    gradient_weight_ = MatrixMemory(device_, shape_.weight());
    gradient_bias_ = MatrixMemory(device_, shape_.bias());
    partial_ = MatrixMemory(device_, shape_.partial());
    changed_ = device_.allocate_host(sizeof(std::uint64_t), HostMemory::pinned);
    stream->synchronize();
  }

  std::unique_ptr<Runner> make(const std::string& name) override {
    class LinearRunner final : public Runner {
     public:
      LinearRunner(LinearProblem& problem, std::unique_ptr<Linear> made) : problem_(problem), made_(std::move(made)) {}
      void queue(Stream& stream, std::size_t copy) override { made_->queue(stream, problem_.data(copy)); }
      std::map<std::string, std::string> chosen() const override { return made_->chosen(); }

     private:
      LinearProblem& problem_;
      std::unique_ptr<Linear> made_;
    };
    return std::make_unique<LinearRunner>(*this, LinearRungs::instance().get("--rung", name).make(shape_, device_));
  }

  ProductVerdict verify(const std::string& name, Runner& runner, std::size_t copy) override {
    const auto stream = device_.stream();
    auto* const changed = reinterpret_cast<std::uint64_t*>(changed_.data());
    *changed = 0;
    std::vector<const MatrixMemory*> results{&slope_, &partial_};
    if (shape_.computes(Pass::forward)) results.insert(results.end(), {&y_, &copies_[copy].before_gelu});
    if (shape_.computes(Pass::backward_input)) results.push_back(&gradient_x_);
    if (shape_.computes(Pass::backward_weight)) results.push_back(&gradient_weight_);
    if (shape_.computes(Pass::backward_bias)) results.push_back(&gradient_bias_);
    for (const MatrixMemory* each : results) each->poison(*stream);
    runner.queue(*stream, copy);
    for (const MatrixMemory* each : results) count_changed(*stream, *each, changed);
    const Copy& inputs = copies_[copy];
    std::uint64_t seed = seed_ + 4 * copy;
    for (const MatrixMemory* each : {&inputs.x, &inputs.weight, &inputs.gradient_y}) {
      count_different(*stream, each->matrix(), inputs_, mix64(seed++), changed);
    }
    ProductVerdict all;
    for (const auto& [part, product] : products_of(data(copy))) {
      Precision precision = LinearRungs::instance().get("--rung", name).precision(shape_);
      // The gradient of the value before gelu is rounded before it is multiplied.
      if (part != Pass::forward && shape_.gelu) precision.operand += bytes_of(shape_.element) == 2 ? 0x1p-8 : 0x1p-20;
      const ProductVerdict verdict = check_product(device_, *stream, product, precision, kSamples, copy);
      all.samples += verdict.samples;
      all.error = std::max(all.error, verdict.error);
      all.share = std::max(all.share, verdict.share);
      if (!verdict.wrong.empty() && all.wrong.empty()) all.wrong = text_of(part) + ": " + verdict.wrong;
    }
    if (*changed != 0)
      all.wrong = fmt::format("{} bytes outside the results, or elements of the inputs, were changed", *changed);
    return all;
  }

 private:
  static constexpr std::uint64_t kSamples = 1024;
  struct Copy {
    MatrixMemory x, weight, gradient_y, before_gelu;
  };

  LinearData data(std::size_t copy) const {
    const Copy& from = copies_[copy];
    return {.x = from.x.matrix(),
            .weight = from.weight.matrix(),
            .bias = bias_.matrix(),
            .gradient_y = from.gradient_y.matrix(),
            .before_gelu = from.before_gelu.matrix(),
            .y = y_.matrix(),
            .gradient_x = gradient_x_.matrix(),
            .gradient_weight = gradient_weight_.matrix(),
            .gradient_bias = gradient_bias_.matrix(),
            .slope = slope_.matrix(),
            .partial = partial_.matrix()};
  }

  /// What the pass must have computed.
  std::vector<std::pair<Pass, Product>> products_of(const LinearData& data) const {
    std::vector<std::pair<Pass, Product>> products;
    const auto slope = [&](bool transposed) {
      Operand operand{data.gradient_y, transposed};
      if (shape_.gelu) operand.slope_of = data.before_gelu;
      return operand;
    };
    const auto add = [&](Pass pass, Product product) {
      product.inputs = inputs_;
      if (shape_.computes(pass)) products.emplace_back(pass, product);
    };
    add(Pass::forward, {.left = {data.x},
                        .right = {data.weight, true},
                        .result = data.y,
                        .depth = shape_.in,
                        .bias = reinterpret_cast<const float*>(data.bias.data),
                        .before_gelu = data.before_gelu,
                        .gelu = shape_.gelu});
    add(Pass::backward_input,
        {.left = slope(false), .right = {data.weight}, .result = data.gradient_x, .depth = shape_.out});
    add(Pass::backward_weight,
        {.left = slope(true), .right = {data.x}, .result = data.gradient_weight, .depth = shape_.rows});
    add(Pass::backward_bias, {.left = {.matrix = {}, .ones = true},
                              .right = slope(false),
                              .result = data.gradient_bias,
                              .depth = shape_.rows});
    return products;
  }

  LinearShape shape_;
  Inputs inputs_ = Inputs::normal;
  std::uint64_t seed_ = 0;
  Device& device_;
  DeviceInfo info_;
  std::vector<Copy> copies_;
  MatrixMemory bias_, y_, slope_, gradient_x_, gradient_weight_, gradient_bias_, partial_;
  Buffer changed_;
};

const LadderRegistration registered("linear",
                                    {.description = "a linear layer with GELU, forward and backward",
                                     .axes = axes_of_linear().list(),
                                     .rungs = [] { return rungs_of(LinearRungs::instance()); },
                                     .make = [](const Values& values, Device& device) -> std::unique_ptr<Problem> {
                                       return std::make_unique<LinearProblem>(values, device);
                                     }});

}  // namespace

std::string text_of(Pass pass) { return kPasses[static_cast<std::size_t>(pass)]; }

}  // namespace feedrate::ladder
