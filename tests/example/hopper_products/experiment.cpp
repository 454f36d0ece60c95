// An experiment on a kernel that processes no messages: small matrix products with warpgroup instructions.
#include <fmt/format.h>

#include <cstring>

#include "experiments/harness/kernels/kernel_timer.hpp"
#include "experiments/harness/measure/session.hpp"
#include "tests/example/hopper_products/products.hpp"

namespace feedrate::hopper_products {
namespace {

struct Options {
  std::string device = "auto", cache = "warm";
  unsigned products = 1024;
};
const Axes<Options>& own_axes() {
  static const auto kAxes = Axes<Options>()
                                .word("device", &Options::device, {"auto", "cpu", "cuda"}, "device to run on")
                                .word("cache", &Options::cache, {"warm", "cold"}, "cold = flushed before each launch")
                                .number("products", &Options::products, {1, 65536}, "products per launch");
  return kAxes;
}

/// Half-precision operands from 0 to 7; each copy has different values.
std::vector<Half> operands_of(std::size_t copy, std::size_t products) {
  constexpr Half kWhole[] = {0, 0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
  std::vector<Half> operands(products * (kLeft + kRight));
  std::uint64_t state = copy + 1;
  for (Half& each : operands) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    each = kWhole[state >> 61];
  }
  return operands;
}

class Products final : public Experiment {
 public:
  explicit Products(Session& session) : session_(session) {}
  Resolution resolve(const Values& values) override {
    Options options = own_axes().of(values);
    const DeviceInfo device = session_.device().info();
    options.device = device.kind;
    Resolution made;
    own_axes().put(options, made.values);
    if (device.kind == "cuda" && device.capability != 90) {
      made.impossible = "the kernel needs a GPU of compute capability 9.0";
    }
    return made;
  }

  Measurement measure(const Resolution& cell, const Repetition& repetition) override {
    const Options options = own_axes().of(cell.values);
    Device& device = session_.device();
    const auto stream = device.stream();
    const Rotation operands = Rotation::of(device, options.products * kOperandBytes, 3);
    const Buffer results = device.allocate_device(options.products * kResultBytes);
    for (std::size_t copy = 0; copy < operands.size(); ++copy) {
      const auto made = operands_of(3 * repetition.number + copy, options.products);
      stream->copy_to_device(operands.at(copy).data(), reinterpret_cast<const std::byte*>(made.data()),
                             operands.at(copy).size());
      stream->synchronize();
    }
    const auto launch = [&](Stream& queue, std::size_t number) {
      queue.launch(products(operands.at(number).data(), results.data(), options.products));
    };
    Measurement measured;
    measured.host_threads = 1;
    const auto samples =
        time_kernel(device, launch, {.seconds = session_.settings().seconds, .cold = options.cache == "cold"},
                    session_.gpu(), interrupted);
    if (samples.empty()) {
      measured.judge(Status::invalid, Cause::interrupted, "interrupted before the first launch");
      return measured;
    }
    for (std::size_t copy = 0; copy < operands.size(); ++copy) {
      launch(*stream, copy);
      if (const std::string wrong = verify(results, 3 * repetition.number + copy, options, *stream); !wrong.empty()) {
        measured.judge(Status::failed, Cause::wrong_results, wrong);
        return measured;
      }
    }
    Histogram times;
    for (const KernelSample& sample : samples) times.record(static_cast<std::uint64_t>(sample.ns));
    measured.histograms["launch_ns"] = {times, 1};
    measured.numbers["products_per_second"] = options.products / (static_cast<double>(times.quantile(0.5)) / 1e9);
    measured.bounds_of_figures.emplace_back(
        "products_per_second", ceiling_of("tensor_f16_operations_per_second") / given("operations", kOperations));
    measured.details["samples"] = describe(samples);
    if (const auto compiled = device.resources(products(operands.at(0).data(), results.data(), options.products))) {
      measured.details["compiled"] = to_json(*compiled);
    }
    return measured;
  }

 private:
  /// Checks every product of one launch. The comparison is exact, because sums of small whole numbers are exact.
  static std::string verify(const Buffer& results, std::size_t copy, const Options& options, Stream& stream) {
    const auto operands = operands_of(copy, options.products);
    std::vector<float> found(options.products * kResult), expected(kResult);
    stream.copy_to_host(reinterpret_cast<std::byte*>(found.data()), results.data(), results.size());
    stream.synchronize();
    for (std::size_t i = 0; i < options.products; ++i) {
      const Half* const left = operands.data() + i * (kLeft + kRight);
      multiply(left, left + kLeft, expected.data());
      if (std::memcmp(expected.data(), found.data() + i * kResult, kResultBytes) != 0) {
        return fmt::format("product {} of {} is wrong", i, options.products);
      }
    }
    return "";
  }

  Session& session_;
};

const ExperimentRegistration registered("hopper-products",
                                        {.description = "example: a custom kernel for compute capability 9.0",
                                         .axes =
                                             [] {
                                               AxisTable table;
                                               table.add("", own_axes().list());
                                               return table;
                                             },
                                         .figures = {{"products_per_second", "1/s", Better::higher, false, true,
                                                      "products; for each input, one launch is fully verified"},
                                                     {"launch_ns", "ns", Better::lower, true, true,
                                                      "duration of one launch between two events"}},
                                         .variant = {"cache"},
                                         .shown = {"products"},
                                         .rate = "products_per_second",
                                         .time = "launch_ns",
                                         .make = [](Session& session) { return std::make_unique<Products>(session); }});

}  // namespace
}  // namespace feedrate::hopper_products
