#include "kernels/linear/by_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace feedrate::ladder {
namespace {

const MatmulRung& product_rung(const std::string& name) { return MatmulRungs::instance().get("matmul rung", name); }

MatmulShape forward_product(const LinearShape& shape, Epilogue epilogue) {
  return {.m = shape.rows,
          .n = shape.out,
          .k = shape.in,
          .element = shape.element,
          .layout = Layout::nt,
          .epilogue = epilogue};
}
MatmulShape input_product(const LinearShape& shape) {
  return {.m = shape.rows, .n = shape.in, .k = shape.out, .element = shape.element, .layout = Layout::nn};
}
MatmulShape weight_product(const LinearShape& shape) {
  return {.m = shape.out, .n = shape.in, .k = shape.rows, .element = shape.element, .layout = Layout::tn};
}

/// The products that a pass needs, each with its rung.
std::vector<std::pair<std::string, MatmulShape>> products_of(const LinearShape& shape, const LinearParts& parts) {
  std::vector<std::pair<std::string, MatmulShape>> products;
  if (shape.computes(Pass::forward)) {
    const Epilogue fused = shape.gelu ? Epilogue::bias_gelu : Epilogue::bias;
    products.emplace_back(parts.forward, forward_product(shape, parts.fuses_epilogue ? fused : Epilogue::none));
  }
  if (shape.computes(Pass::backward_input)) products.emplace_back(parts.input, input_product(shape));
  if (shape.computes(Pass::backward_weight) && parts.weight_by == nullptr) {
    MatmulShape weight = weight_product(shape);
    weight.batch = parts.weight_splits;
    weight.k /= parts.weight_splits;
    products.emplace_back(parts.weight, weight);
  }
  return products;
}

class ByProducts final : public Linear {
 public:
  ByProducts(const LinearShape& shape, Device& device, const LinearParts& parts) : shape_(shape), parts_(parts) {
    const auto products = products_of(shape, parts);
    auto made = [&, next = products.begin()]() mutable {
      const auto& [rung, product] = *next++;
      return product_rung(rung).make(product, device);
    };
    if (shape.computes(Pass::forward)) forward_ = made();
    if (shape.computes(Pass::backward_input)) input_ = made();
    if (!shape.computes(Pass::backward_weight) || parts.weight_by != nullptr) return;
    weight_ = made();
    if (parts.weight_splits == 1) return;
    parts_of_weight_ = products.back().second.result();
    memory_ = device.allocate_device(parts_of_weight_.bytes());
    parts_of_weight_.data = memory_.data();
  }

  void queue(Stream& stream, const LinearData& data) override {
    if (forward_) forward(stream, data);
    if (!shape_.computes_backward()) return;
    const bool bias = shape_.computes(Pass::backward_bias);
    if (bias && parts_.slope_and_bias != nullptr) {
      parts_.slope_and_bias(stream, shape_, data);
    } else {
      parts_.slope(stream, shape_, data);
      if (bias) parts_.bias(stream, shape_, data);
    }
    if (input_) input_->queue(stream, {data.slope, data.weight, data.gradient_x});
    if (weight_) weight(stream, data);
    if (shape_.computes(Pass::backward_weight) && !weight_) parts_.weight_by(stream, shape_, data);
  }

 private:
  void forward(Stream& stream, const LinearData& data) {
    if (parts_.fuses_epilogue) {
      const auto* const bias = reinterpret_cast<const float*>(data.bias.data);
      return forward_->queue(stream, {data.x, data.weight, data.y, bias, data.before_gelu});
    }
    forward_->queue(stream, {data.x, data.weight, data.before_gelu});
    add_bias_and_gelu(stream, shape_, data);
  }

  void weight(Stream& stream, const LinearData& data) {
    if (parts_.weight_splits == 1) return weight_->queue(stream, {data.slope, data.x, data.gradient_weight});
    const auto split = [&](Matrix matrix) {
      matrix.batch = parts_.weight_splits;
      matrix.rows /= parts_.weight_splits;
      return matrix;
    };
    weight_->queue(stream, {split(data.slope), split(data.x), parts_of_weight_});
    add_parts(stream, parts_of_weight_, data.gradient_weight);
  }

  LinearShape shape_;
  LinearParts parts_;
  std::unique_ptr<Matmul> forward_, input_, weight_;
  Matrix parts_of_weight_;
  Buffer memory_;
};

}  // namespace

LinearRung rung_of_parts(const std::string& name, RungText text, const LinearParts& parts,
                         std::vector<Element> elements) {
  return {
      .text = std::move(text),
      .why_unsupported = [name, parts, elements](const LinearShape& shape, const DeviceInfo& device) -> std::string {
        if (std::ranges::find(elements, shape.element) == elements.end()) {
          return fmt::format("rung {} does not compute with {}", name, text_of(shape.element));
        }
        if (shape.computes(Pass::backward_weight) && shape.rows % parts.weight_splits != 0) {
          return fmt::format("rung {} needs --rows that are a multiple of {}", name, parts.weight_splits);
        }
        for (const auto& [rung, product] : products_of(shape, parts)) {
          if (auto reason = product_rung(rung).unavailable(); !reason.empty()) return reason;
          if (auto reason = product_rung(rung).why_unsupported(product, device); !reason.empty()) return reason;
        }
        return "";
      },
      .make = [parts](const LinearShape& shape, Device& device) -> std::unique_ptr<Linear> {
        return std::make_unique<ByProducts>(shape, device, parts);
      }};
}

}  // namespace feedrate::ladder
