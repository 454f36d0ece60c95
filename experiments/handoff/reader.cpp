#include "experiments/handoff/reader.hpp"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "kernels/stages/stage_kernel.hpp"

namespace feedrate::handoff {
namespace {

/// Takes `size` bytes from the front of a packet.
template <class T>
T taken(std::string_view& text) {
  T value{};
  if (text.size() < sizeof value) throw Failure("a request from the exporter is too short");
  std::memcpy(&value, text.data(), sizeof value);
  text.remove_prefix(sizeof value);
  return value;
}

std::string text_of(const Answer& answer) { return {reinterpret_cast<const char*>(&answer), sizeof answer}; }

class Reader {
 public:
  Reader(const std::string& way, const Setting& setting)
      : setting_(setting),
        device_(open_device(setting.device, setting.importer_gpu)),
        importer_(Ways::instance().get("--way", way).importer({setting_, *device_})),
        kernel_{{StageKind::reduce, 1, 1, (setting.bytes - sizeof(ItemHeader)) / 8}, blocks_for(*device_)},
        event_(device_->event()),
        stream_(device_->stream()) {
    device_->use_in_this_thread();
  }

  std::string serve(const Request& request, std::string_view tickets, std::vector<tensors::Descriptor>& descriptors) {
    if (request.op == Op::take) return take(request, tickets, descriptors);
    for (unsigned tensor = 0; tensor < request.tensors; ++tensor) importer_->close(tensor);
    return text_of({});
  }

 private:
  std::string take(const Request& request, std::string_view tickets, std::vector<tensors::Descriptor>& descriptors) {
    Answer answer;
    if (request.fresh != 0) open(request.tensors, tickets, descriptors);
    for (unsigned tensor = 0; tensor < request.tensors; ++tensor) {
      const std::byte* const in = importer_->take(tensor, *stream_);
      if (tensor == 0) stream_->record(*event_);
      stream_->launch(kernel_.on(in, results_.data() + tensor * sizeof(ItemHeader)));
    }
    Backoff backoff;
    while (!event_->ready()) backoff.wait();
    answer.started_ns = now_ns();
    stream_->synchronize();
    answer.read_ns = now_ns();
    std::vector<ItemHeader> found(request.tensors);
    stream_->copy_to_host(reinterpret_cast<std::byte*>(found.data()), results_.data(),
                          found.size() * sizeof(ItemHeader));
    stream_->synchronize();
    std::string text = text_of(answer);
    for (const ItemHeader& each : found) {
      const Read read{each.id, each.sum};
      text.append(reinterpret_cast<const char*>(&read), sizeof read);
    }
    clear(request.tensors);
    return text;
  }
  void open(unsigned tensors, std::string_view tickets, std::vector<tensors::Descriptor>& descriptors) {
    std::size_t next = 0;
    for (unsigned tensor = 0; tensor < tensors; ++tensor) {
      const auto size = taken<std::uint32_t>(tickets);
      const auto has_descriptor = taken<std::uint32_t>(tickets);
      if (size > tickets.size() || (has_descriptor != 0 && next == descriptors.size())) {
        throw Failure("a ticket from the exporter is too short");
      }
      importer_->open(tensor, tickets.substr(0, size),
                      has_descriptor != 0 ? std::move(descriptors[next++]) : tensors::Descriptor());
      tickets.remove_prefix(size);
    }
    if (results_.size() < tensors * sizeof(ItemHeader)) {
      results_ = device_->allocate_device(tensors * sizeof(ItemHeader));
      clear(tensors);
    }
  }
  /// Zeroes the results, because the kernel adds to them.
  void clear(unsigned tensors) {
    const std::vector<ItemHeader> zeros(tensors);
    stream_->copy_to_device(results_.data(), reinterpret_cast<const std::byte*>(zeros.data()),
                            zeros.size() * sizeof(ItemHeader));
    stream_->synchronize();
  }

  const Setting setting_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Importer> importer_;
  StageKernel kernel_;
  Buffer results_;
  std::unique_ptr<Event> event_;
  std::unique_ptr<Stream> stream_;  // last: its destructor waits for work that uses all of the above
};

}  // namespace

void read_tensors(int socket) {
  const auto say = [&](std::string_view text) {
    if (tensors::send_packet(socket, text, {}, std::chrono::seconds(10)) != tensors::Sent::yes) {
      throw Failure("the exporter does not accept replies");
    }
  };
  std::unique_ptr<Reader> reader;
  const auto serve = [&](std::string_view text, std::vector<tensors::Descriptor>& descriptors) {
    const auto request = taken<Request>(text);
    if (request.op == Op::begin) {
      reader.reset();
      const auto end = text.find('\0');
      if (end == std::string_view::npos) throw Failure("a request from the exporter does not name a way");
      reader = std::make_unique<Reader>(std::string(text.substr(0, end)),
                                        nlohmann::json::parse(text.substr(end + 1)).get<Setting>());
      return text_of({});
    }
    if (!reader) throw Failure("the exporter has not sent a way and a setting");
    return reader->serve(request, text, descriptors);
  };
  tensors::Packet packet;
  try {
    Backoff backoff;
    while (true) {
      switch (tensors::receive_packet(socket, packet, tensors::kPacketDescriptors)) {
        case tensors::Received::packet:
          say(serve(packet.text, packet.descriptors));
          backoff.reset();
          break;
        case tensors::Received::nothing:
          backoff.wait();
          break;
        default:
          return;
      }
    }
  } catch (const std::exception& error) {
    say(text_of({.failed = 1}) + error.what());
  }
}

}  // namespace feedrate::handoff
