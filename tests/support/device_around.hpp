#pragma once
#include <memory>
#include <string>
#include <utility>

#include "common/device/device.hpp"

/// Wrappers around a device, its streams and its graphs, which do the actual work. Tests override single calls.
namespace feedrate::test {

class StreamAround : public Stream {
 public:
  explicit StreamAround(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
  void copy_to_device(std::byte* device, const std::byte* host, std::size_t bytes) override {
    stream_->copy_to_device(device, host, bytes);
  }
  void copy_to_host(std::byte* host, const std::byte* device, std::size_t bytes) override {
    stream_->copy_to_host(host, device, bytes);
  }
  void copy_batch(std::span<const Copy> copies, Direction direction) override {
    stream_->copy_batch(copies, direction);
  }
  void copy_to_peer(std::byte* to, const std::byte* from, std::size_t bytes) override {
    stream_->copy_to_peer(to, from, bytes);
  }
  using Stream::launch;
  void launch(const Launchable& launchable) override { stream_->launch(launchable); }
  void fill(std::byte* device, unsigned char value, std::size_t bytes) override { stream_->fill(device, value, bytes); }
  std::byte* allocate(std::size_t bytes) override { return stream_->allocate(bytes); }
  void free(std::byte* data) override { stream_->free(data); }
  void write_word(std::uint64_t* device, std::uint64_t value) override { stream_->write_word(device, value); }
  void record(Event& event) override { stream_->record(event); }
  void wait(Event& event) override { stream_->wait(event); }
  void synchronize() override { stream_->synchronize(); }
  Stream& inner() { return *stream_; }

 private:
  std::unique_ptr<Stream> stream_;
};

class GraphAround : public Graph {
 public:
  explicit GraphAround(std::unique_ptr<Graph> graph) : graph_(std::move(graph)) {}
  Node add(const Copy& copy, Direction direction, std::span<const Node> after) override {
    return graph_->add(copy, direction, after);
  }
  Node add(const Kernel& kernel, const BatchView& batch, unsigned block, std::span<const Node> after) override {
    return graph_->add(kernel, batch, block, after);
  }
  Node add(const Launchable& launchable, std::span<const Node> after) override {
    return graph_->add(launchable, after);
  }
  void change(Node node, const Copy& copy) override { graph_->change(node, copy); }
  void change(Node node, const BatchView& batch) override { graph_->change(node, batch); }
  void set_excluded(Node node, bool excluded) override { graph_->set_excluded(node, excluded); }
  void launch(Stream& stream) override { graph_->launch(dynamic_cast<StreamAround&>(stream).inner()); }

 private:
  std::unique_ptr<Graph> graph_;
};

/// A wrapper around the CPU device.
class DeviceAround : public Device {
 public:
  std::string_view kind() const override { return device_->kind(); }
  DeviceInfo info() const override { return device_->info(); }
  Buffer allocate_host(std::size_t bytes, HostMemory memory) override { return device_->allocate_host(bytes, memory); }
  Buffer allocate_device(std::size_t bytes, Fresh fresh) override { return device_->allocate_device(bytes, fresh); }
  Buffer pin(std::byte* data, std::size_t bytes, Access access) override {
    return device_->pin(data, bytes, access);
  }
  std::unique_ptr<Stream> stream() override { return std::make_unique<StreamAround>(device_->stream()); }
  std::unique_ptr<Event> event(bool timed) override { return device_->event(timed); }
  std::unique_ptr<Graph> graph() override { return std::make_unique<GraphAround>(device_->graph()); }
  std::unique_ptr<Graph> capture(const std::function<void(Stream&)>& body) override {
    return std::make_unique<GraphAround>(device_->capture(body));
  }
  std::optional<KernelResources> resources(const Launchable& launchable) override {
    return device_->resources(launchable);
  }
  bool copies_in_batches() const override { return device_->copies_in_batches(); }
  std::string enable_peer_access(Device& other) override { return device_->enable_peer_access(other); }
  ClockReading read_clock() override { return device_->read_clock(); }
  unsigned max_lanes(const Kernel& kernel, const ResidentShape& shape) override {
    return device_->max_lanes(kernel, shape);
  }
  std::unique_ptr<Resident> start_resident(const Kernel& kernel, std::span<const LaneView> lanes,
                                           const ResidentShape& shape) override {
    return device_->start_resident(kernel, lanes, shape);
  }

 protected:
  std::unique_ptr<Device> device_ = open_cpu_device();
};

}  // namespace feedrate::test
