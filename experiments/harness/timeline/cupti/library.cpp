#include "features.hpp"
#ifdef FEEDRATE_CUPTI
#include "experiments/harness/timeline/cupti/library.hpp"

#include <array>

namespace feedrate {
namespace {

/// Search order: the loader's own paths, a bundle's folder, then the folders of CUDA's packages. The header's version
/// is first. Only record members that exist in all versions are read.
constexpr std::array kPlaces{
    "libcupti.so.13",
    "$ORIGIN/../lib/libcupti.so.13",
    "/usr/local/cuda/lib64/libcupti.so.13",
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
    "libcupti.so.12",
    "$ORIGIN/../lib/libcupti.so.12",
    "/usr/local/cuda/lib64/libcupti.so.12",
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12",
    "libcupti.so",
    "/usr/local/cuda/lib64/libcupti.so",
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
};

}  // namespace

void* open_cupti_library() {
  for (const char* place : kPlaces) {
    // CUPTI has its own threads and handlers, so it is never unloaded.
    if (void* library = dlopen(place, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return library;
  }
  return nullptr;
}

std::string Cupti::unavailable() const {
  if (library == nullptr) return fmt::format("CUPTI is missing: found neither {} nor another version", kPlaces[0]);
  std::string reason;
  const auto need = [&](const auto& function) {
    if (!function.there()) reason = fmt::format("this CUPTI is too old: it has no {}", function.name());
  };
  const auto need_all = [&](const auto&... functions) { (need(functions), ...); };
  need_all(enable, disable, enable_runtime, enable_driver, flush, next_record, dropped, callbacks, clock, set_attribute,
           callback_name, result_string, thread_ids);
  return reason;
}

const Cupti& cupti() {
  static const Cupti library;
  return library;
}

}  // namespace feedrate
#endif
