#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/device/device.hpp"
#include "common/registry.hpp"
#include "libraries/tensors/memory.hpp"

/// Ways to hand a tensor from one process to another that computes on it. One process gives, others take; each has a
/// device of its own, which may be the same GPU.
namespace feedrate::handoff {

/// What both sides know.
struct Setting {
  std::string device = "cpu";  ///< kind of both sides' devices
  std::size_t bytes = 0;       ///< of a tensor
  unsigned giver_gpu = 0, taker_gpu = 0;
  bool copies_to_peer = false;  ///< with two GPUs: the taker copies to its own memory what it could read over there
  std::string address;          ///< of the service that the way needs
  bool shared = false;          ///< others use it, too: what is made there must expire
  std::string prefix;           ///< of this run's names there
};

struct Config {
  const Setting& setting;
  Device& device;  ///< this side's
};

/// What a taker needs to reach a tensor that it has not had yet. The giver keeps the descriptor.
using Ticket = tensors::Handle;

/// The side that has tensors, numbered from 0. One thread.
class Giver {
 public:
  virtual ~Giver() = default;
  /// A new tensor's place in the giver's device memory.
  virtual std::byte* create(unsigned tensor) = 0;
  virtual Ticket ticket(unsigned tensor) = 0;
  /// The giver's device has written the tensor, and all of that has ended: lets takers have what lies there now.
  virtual void offer(unsigned /*tensor*/) {}
  virtual void destroy(unsigned tensor) = 0;
};

/// The side that computes. One thread.
class Taker {
 public:
  virtual ~Taker() = default;
  virtual void open(unsigned tensor, std::string_view ticket, tensors::Descriptor) = 0;
  /// An offered tensor, in memory that the taker's device reads; what must still be moved is queued on the stream.
  virtual const std::byte* take(unsigned tensor, Stream&) = 0;
  /// Nothing that uses the tensor runs any more.
  virtual void close(unsigned tensor) = 0;
};

/// Copies of a tensor that exist while it is handed over, beside the giver's own.
struct Copies {
  unsigned device_of_reader = 0;          ///< in each reader's device memory
  unsigned host = 0, host_of_reader = 0;  ///< in host memory: in all, and for each reader
  unsigned moves_over_bus = 0;            ///< between host and device, one after the other
};

struct Entry {
  std::string description;
  Copies copies;
  std::string service = {};  ///< that it needs
  /// Why it can't be; empty when it can.
  std::function<std::string(const Setting&)> refuse = {};
  std::function<std::unique_ptr<Giver>(const Config&)> giver;
  std::function<std::unique_ptr<Taker>(const Config&)> taker;
};
using Ways = Registry<Entry>;
using WayRegistration = Registration<Entry>;

/// A giver's or a taker's `make` that constructs T from its config.
template <class Base, class T>
std::unique_ptr<Base> make(const Config& config) {
  return std::make_unique<T>(config);
}

/// Device memory of one's own for each tensor, kept until the tensor goes. Not filled: that would be timed.
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

/// In tensors of a memory that both map, a taker on another GPU may copy before it computes.
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
