#include <fmt/format.h>

#include "common/redis/connection.hpp"
#include "common/redis/own_keys.hpp"
#include "variants/handoff/handoff.hpp"

namespace feedrate::handoff {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{512} << 20;  // Redis's default limit for a value

/// The members that both sides share.
struct RedisSide {
  explicit RedisSide(const Config& config)
      : setting_(config.setting), redis_(setting_.address), memory_(config.device, setting_.bytes) {}
  std::string key_of(unsigned tensor) const { return fmt::format("{}:{}", setting_.prefix, tensor); }

  const Setting setting_;
  redis::Connection redis_;
  OwnMemory memory_;
};

class RedisExporter final : public Exporter, private RedisSide {
 public:
  explicit RedisExporter(const Config& config)
      : RedisSide(config),
        staging_(config.device.allocate_host(setting_.bytes, HostMemory::pinned)),
        stream_(config.device.stream()) {}

  std::byte* create(unsigned tensor) override { return memory_.of(tensor); }
  Ticket ticket(unsigned) override { return {}; }
  void offer(unsigned tensor) override {
    stream_->copy_to_host(staging_.data(), memory_.of(tensor), setting_.bytes);
    stream_->synchronize();
    const std::string_view value{reinterpret_cast<const char*>(staging_.data()), setting_.bytes};
    const std::string key = key_of(tensor);
    if (setting_.shared) {
      redis_.command({"SET", key, value, "PX", redis::kLifetimeMs});
    } else {
      redis_.command({"SET", key, value});
    }
  }
  void destroy(unsigned tensor) override {
    redis_.command({"DEL", key_of(tensor)});
    memory_.drop(tensor);
  }

 private:
  Buffer staging_;
  std::unique_ptr<Stream> stream_;
};

class RedisImporter final : public Importer, private RedisSide {
 public:
  using RedisSide::RedisSide;

  void open(unsigned, std::string_view, tensors::Descriptor) override {}
  const std::byte* take(unsigned tensor, Stream& stream) override {
    redis::Reply& reply = replies_[tensor];  // kept until the copy from it has ended
    reply = redis_.command({"GET", key_of(tensor)});
    if (reply->type != REDIS_REPLY_STRING || reply->len != setting_.bytes) {
      throw Failure(fmt::format("Redis has no tensor of {} bytes at {}", setting_.bytes, key_of(tensor)));
    }
    std::byte* const own = memory_.of(tensor);
    stream.copy_to_device(own, reinterpret_cast<const std::byte*>(reply->str), setting_.bytes);
    return own;
  }
  void close(unsigned tensor) override {
    replies_.erase(tensor);
    memory_.drop(tensor);
  }

 private:
  std::map<unsigned, redis::Reply> replies_;
};

const WayRegistration registered(
    "redis_value",
    {.description = "the bytes as a value in Redis, through host memory on both sides",
     .copies = {.device_of_reader = 1, .host = 2, .host_of_reader = 1, .moves_over_bus = 2},
     .service = "redis",
     .why_unsupported =
         [](const Setting& setting) { return setting.bytes > kMaxBytes ? "a Redis value cannot exceed 512 MiB" : ""; },
     .exporter = make<Exporter, RedisExporter>,
     .importer = make<Importer, RedisImporter>});

}  // namespace
}  // namespace feedrate::handoff
