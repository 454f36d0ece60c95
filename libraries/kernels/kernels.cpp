#include <feedrate/kernels.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "common/error.hpp"
#include "common/export.hpp"
#include "features.hpp"
#include "kernels/matmul/matmul.hpp"
#ifdef FEEDRATE_WITH_CUDA
#include "common/device/cuda_stream.hpp"
#endif

namespace feedrate::ladder {
namespace {

/// Writes text with its final 0, cut off at `room` bytes.
void write(const std::string& text, char* to, std::size_t room) {
  if (room == 0) return;
  const std::size_t bytes = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), bytes);
  to[bytes] = 0;
}

MatmulShape shape_of(const feedrate_product& call) {
  return {.m = call.m,
          .n = call.n,
          .k = call.k,
          .batch = call.batch,
          .element = element_of(call.dtype),
          .layout = layout_of(call.layout),
          .epilogue = call.bias == nullptr ? Epilogue::none
                      : call.gelu == 0     ? Epilogue::bias
                                           : Epilogue::bias_gelu,
          .scale = call.scale};
}

void require_alignment(const feedrate_product& call) {
  const auto require = [](const char* name, const void* data) {
    if (reinterpret_cast<std::uintptr_t>(data) % 16 != 0) {
      throw BadInput(name, fmt::format("data at {}", data), "data at multiples of 16 bytes");
    }
  };
  require("a", call.left);
  require("b", call.right);
  require("out", call.result);
}

/// One device, and what its rungs have prepared for shapes.
struct Place {
  std::unique_ptr<Device> device;
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Matmul>> prepared;
};

Place& place_of(const std::string& kind, unsigned index) {
  static std::mutex mutex;
  // Never destroyed, because CUDA may end before this library.
  static auto& places = *new std::map<std::pair<std::string, unsigned>, Place>;
  const std::lock_guard lock(mutex);
  Place& place = places[{kind, index}];
  if (!place.device) place.device = open_device(kind, index);
  return place;
}

std::unique_ptr<Stream> stream_of(const feedrate_product& call, Device& device) {
#ifdef FEEDRATE_WITH_CUDA
  if (device.kind() == "cuda") return std::make_unique<CudaStream>(static_cast<cudaStream_t>(call.stream));
#endif
  static_cast<void>(call);
  return device.stream();
}

void multiply(const feedrate_product& call) {
  constexpr std::size_t kMostPrepared = 64;  // some hold workspaces
  const MatmulRung& rung = MatmulRungs::instance().get("rung", call.rung);
  const std::string kind = call.device;
  if (kind != "cuda" && kind != "cpu") throw BadInput("device", kind, "cuda, cpu");
  constexpr std::uint64_t kMost = std::uint64_t{1} << 28;  // the kernels count bytes of a row in 32 bits
  for (const auto& [name, size] : {std::pair("m", call.m), std::pair("n", call.n), std::pair("k", call.k)}) {
    if (size > kMost) throw BadInput(name, std::to_string(size), fmt::format("at most {}", kMost));
  }
  if (call.batch > 65535) throw BadInput("batch", std::to_string(call.batch), "at most 65535");
  if (rung.text.device != kind) {
    throw BadInput("rung", call.rung, fmt::format("rungs for the device '{}', where the tensors are", kind));
  }
  if (auto reason = rung.unavailable(); !reason.empty()) throw Failure(fmt::format("rung {}: {}", call.rung, reason));
  if (call.gelu != 0 && call.bias == nullptr) throw BadInput("gelu", "True", "gelu with a bias");
  if (kind == "cuda") require_alignment(call);
  const MatmulShape shape = shape_of(call);
  Place& place = place_of(kind, call.index);
  if (auto reason = rung.why_unsupported(shape, place.device->info()); !reason.empty()) {
    throw BadInput("rung", call.rung, fmt::format("rungs for this product ({})", reason));
  }
  if (shape.m == 0 || shape.n == 0 || shape.batch == 0) return;
  const std::lock_guard lock(place.mutex);
  const std::string key = fmt::format("{} {} {} {} {} {} {} {} {}", call.rung, call.dtype, call.layout, call.m, call.n,
                                      call.k, call.batch, static_cast<int>(shape.epilogue), call.scale);
  if (place.prepared.size() >= kMostPrepared && !place.prepared.contains(key)) place.prepared.clear();
  auto& prepared = place.prepared[key];
  if (!prepared) prepared = rung.make(shape, *place.device);
  MatmulData data{shape.left(), shape.right(), shape.result(), call.bias};
  data.left.data = static_cast<std::byte*>(const_cast<void*>(call.left));
  data.right.data = static_cast<std::byte*>(const_cast<void*>(call.right));
  data.result.data = static_cast<std::byte*>(call.result);
  const auto stream = stream_of(call, *place.device);
  prepared->queue(*stream, data);
  if (call.wait != 0 || kind != "cuda") stream->synchronize();
}

}  // namespace
}  // namespace feedrate::ladder

FEEDRATE_EXPORT int feedrate_matmul(const feedrate_product* call, char* error, size_t room) {
  try {
    feedrate::ladder::multiply(*call);
    return 0;
  } catch (const feedrate::BadInput& bad) {
    feedrate::ladder::write(bad.what(), error, room);
    return 2;
  } catch (const std::exception& failure) {
    feedrate::ladder::write(failure.what(), error, room);
    return 1;
  }
}

FEEDRATE_EXPORT size_t feedrate_rungs(char* text, size_t room) {
  using namespace feedrate::ladder;
  std::string lines;
  for (const RungInfo& rung : rungs_of(MatmulRungs::instance())) {
    lines += fmt::format("{}\t{}\t{}\t{}\t{}\n", rung.name, rung.text.device, rung.text.step, rung.unavailable(),
                         rung.text.changes);
  }
  write(lines, text, room);
  return lines.size() + 1;
}
