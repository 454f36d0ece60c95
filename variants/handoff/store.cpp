#include <fmt/format.h>

#include "feedrate/tensors.hpp"
#include "variants/handoff/handoff.hpp"

namespace feedrate::handoff {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);

std::string name_of(const Setting& setting, unsigned tensor) { return fmt::format("{}/{}", setting.prefix, tensor); }

class StoreExporter final : public Exporter {
 public:
  explicit StoreExporter(const Config& config) : setting_(config.setting), store_(setting_.address) {}

  std::byte* create(unsigned tensor) override {
    const auto bytes = static_cast<std::int64_t>(setting_.bytes);
    auto& made = tensors_[tensor] = store_.create(name_of(setting_, tensor), {tensors::Dtype::u8, {bytes}, {}});
    return static_cast<std::byte*>(made.data());
  }
  Ticket ticket(unsigned) override { return {}; }
  void offer(unsigned tensor) override { tensors_.at(tensor).publish(); }
  void destroy(unsigned tensor) override {
    store_.remove(name_of(setting_, tensor));
    tensors_.erase(tensor);
  }

 private:
  const Setting setting_;
  tensors::Store store_;
  std::map<unsigned, tensors::Tensor> tensors_;
};

class StoreImporter final : public Importer {
 public:
  explicit StoreImporter(const Config& config) : setting_(config.setting), store_(setting_.address) {}

  void open(unsigned tensor, std::string_view, tensors::Descriptor) override {
    held_[tensor] = {store_.get(name_of(setting_, tensor)), 0};
  }
  const std::byte* take(unsigned tensor, Stream&) override {
    auto& [held, version] = held_.at(tensor);
    if (!held.wait_for(++version, kPatience))
      throw Failure(fmt::format("version {} of tensor {} was not published in time", version, tensor));
    return static_cast<const std::byte*>(held.data());
  }
  void close(unsigned tensor) override { held_.erase(tensor); }

 private:
  struct Held {
    tensors::Tensor tensor;
    std::uint64_t version = 0;
  };
  const Setting setting_;
  tensors::Store store_;
  std::map<unsigned, Held> held_;
};

const WayRegistration registered("store", {.description = "by name in a tensor store, whose daemon is a third process",
                                           .copies = {},
                                           .service = "store",
                                           .why_unsupported =
                                               [](const Setting& setting) {
                                                 return setting.importer_gpu == setting.exporter_gpu
                                                            ? ""
                                                            : "a store's clients use the GPU that owns the memory";
                                               },
                                           .exporter = make<Exporter, StoreExporter>,
                                           .importer = make<Importer, StoreImporter>});

}  // namespace
}  // namespace feedrate::handoff
