#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/device/device.hpp"
#include "common/registry.hpp"
#include "libraries/tensors/memory.hpp"

/// Ways to hand a tensor from one process to another that computes on it. One process exports the tensor and others
/// import it; each has its own device, which may be the same GPU.
namespace feedrate::handoff {

/// The settings that both sides share.
struct Setting {
  std::string device = "cpu";  ///< kind of both sides' devices
  std::size_t bytes = 0;       ///< size of a tensor
  unsigned exporter_gpu = 0, importer_gpu = 0;
  bool copies_to_peer =
      false;            ///< with two GPUs: the importer copies tensors to its own memory instead of reading remotely
  std::string address;  ///< address of the service that the way needs
  bool shared = false;  ///< other users share the service, so keys created there must expire
  std::string prefix;   ///< prefix of this run's names on the service
};

struct Config {
  const Setting& setting;
  Device& device;  ///< this side's
};

/// The information with which an importer opens a tensor for the first time. The exporter keeps the descriptor.
using Ticket = tensors::Handle;

/// The side that owns the tensors, which are numbered from 0. Used by one thread.
class Exporter {
 public:
  virtual ~Exporter() = default;
  /// Creates a tensor and returns its address in the exporter's device memory.
  virtual std::byte* create(unsigned tensor) = 0;
  virtual Ticket ticket(unsigned tensor) = 0;
  /// Makes the tensor's current contents available to importers. The exporter's device must have finished writing.
  virtual void offer(unsigned /*tensor*/) {}
  virtual void destroy(unsigned tensor) = 0;
};

/// The side that computes. Used by one thread.
class Importer {
 public:
  virtual ~Importer() = default;
  virtual void open(unsigned tensor, std::string_view ticket, tensors::Descriptor) = 0;
  /// Returns an offered tensor, in memory that the importer's device can read; copies that are still needed are queued
  /// on the stream.
  virtual const std::byte* take(unsigned tensor, Stream&) = 0;
  /// Closes a tensor. No work that uses it may still be running.
  virtual void close(unsigned tensor) = 0;
};

/// Copies of a tensor that exist during the hand-off, in addition to the exporter's own.
struct Copies {
  unsigned device_of_reader = 0;          ///< in each reader's device memory
  unsigned host = 0, host_of_reader = 0;  ///< in host memory: in total, and for each reader
  unsigned moves_over_bus = 0;            ///< moves between host and device, one after another
};

struct Entry {
  std::string description;
  Copies copies;
  std::string service = {};  ///< name of the service that the way needs
  /// Reason why the way cannot be used; empty if it can.
  std::function<std::string(const Setting&)> why_unsupported = {};
  std::function<std::unique_ptr<Exporter>(const Config&)> exporter;
  std::function<std::unique_ptr<Importer>(const Config&)> importer;
};
using Ways = Registry<Entry>;
using WayRegistration = Registration<Entry>;

/// An exporter's or an importer's `make` that constructs T from its config.
template <class Base, class T>
std::unique_ptr<Base> make(const Config& config) {
  return std::make_unique<T>(config);
}

/// Separate device memory for each tensor, kept until the tensor is dropped. It is not filled, because that would be
/// included in the measured time.
class OwnMemory {
 public:
  OwnMemory(Device& device, std::size_t bytes) : device_(device), bytes_(bytes) {}
  std::byte* of(unsigned tensor) {
    auto found = buffers_.find(tensor);
    if (found == buffers_.end()) found = buffers_.emplace(tensor, device_.allocate_device(bytes_, Fresh::as_is)).first;
    return found->second.data();
  }
  void drop(unsigned tensor) { buffers_.erase(tensor); }

 private:
  Device& device_;
  std::size_t bytes_;
  std::map<unsigned, Buffer> buffers_;
};

/// Copies of tensors in memory that both processes map, for an importer on another GPU that copies before it computes.
class PeerCopies {
 public:
  explicit PeerCopies(const Config& config)
      : wanted_(config.setting.copies_to_peer),
        own_(config.device, config.setting.bytes),
        bytes_(config.setting.bytes) {}
  const std::byte* reached(unsigned tensor, const std::byte* mapped, Stream& stream) {
    if (!wanted_) return mapped;
    std::byte* const own = own_.of(tensor);
    stream.copy_to_peer(own, mapped, bytes_);
    return own;
  }
  void drop(unsigned tensor) { own_.drop(tensor); }

 private:
  bool wanted_;
  OwnMemory own_;
  std::size_t bytes_;
};

}  // namespace feedrate::handoff
