#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "feedrate/storage.h"
#include "feedrate/storage.hpp"

using feedrate::BadInput;
using feedrate::storage::Kind;
using feedrate::storage::Order;
using feedrate::storage::Pending;
using feedrate::storage::Record;
using feedrate::storage::Source;
using feedrate::storage::SourceOptions;

struct feedrate_source {
  Source source;
};
struct feedrate_pending {
  Pending pending;
};

namespace {

constexpr int kFailed = 1, kInvalid = 2;

/// Runs a call; returns its code, with the message of an error in `error`.
template <class Call>
int guarded(char* error, std::size_t room, const Call& call) {
  const auto say = [&](const char* text) {
    if (room != 0 && error != nullptr) std::snprintf(error, room, "%s", text);
  };
  try {
    call();
    return 0;
  } catch (const BadInput& bad) {
    say(bad.what());
    return kInvalid;
  } catch (const std::exception& failure) {
    say(failure.what());
    return kFailed;
  }
}

Source& of(feedrate_source* source) {
  if (source == nullptr) throw BadInput("source", "null", "an open source");
  return source->source;
}

std::vector<Record> records_of(const feedrate_record* records, std::size_t count) {
  if (records == nullptr && count != 0) throw BadInput("records", "null", "an array of records");
  std::vector<Record> all(count);
  std::transform(records, records + count, all.begin(), [](const feedrate_record& one) {
    return Record{one.kind, one.index, one.place};
  });
  return all;
}

std::string text_of(const char* text, const char* standard) { return text == nullptr ? standard : text; }

/// For the thin names: runs a call and prints its error. Returns whether it succeeded.
template <class Call>
bool printed(const Call& call) {
  std::array<char, 1024> error{};
  if (call(error.data(), error.size()) == 0) return true;
  std::fprintf(stderr, "%s\n", error.data());
  return false;
}

}  // namespace

feedrate_source* feedrate_source_open(const char* const* paths, std::size_t count, const feedrate_source_options* given,
                                      char* error, std::size_t room) {
  feedrate_source* opened = nullptr;
  guarded(error, room, [&] {
    if (paths == nullptr && count != 0) throw BadInput("paths", "null", "an array of paths");
    SourceOptions options;
    if (given != nullptr) {
      options.device = text_of(given->device, options.device.c_str());
      options.gpu = given->gpu;
      options.engine = text_of(given->engine, options.engine.c_str());
      options.direct = given->direct != 0;
      options.writable = given->writable != 0;
      if (given->block != 0) options.block = given->block;
      if (given->depth != 0) options.depth = given->depth;
      if (given->gap != 0) options.gap = given->gap;
    }
    std::vector<std::string> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(text_of(paths[i], ""));
    opened = new feedrate_source{Source(std::move(all), options)};
  });
  return opened;
}

void feedrate_source_close(feedrate_source* source) { delete source; }

std::uint64_t feedrate_source_bytes(const feedrate_source* source) {
  return source == nullptr ? 0 : source->source.bytes();
}

int feedrate_source_add_kind(feedrate_source* source, const char* name, std::uint64_t start, std::uint64_t bytes,
                             std::uint64_t record_bytes, const std::uint64_t* offsets, std::size_t count,
                             unsigned* kind, char* error, std::size_t room) {
  return guarded(error, room, [&] {
    if (kind == nullptr) throw BadInput("kind", "null", "the address of a number");
    if (offsets == nullptr && count != 0) throw BadInput("offsets", "null", "an array of offsets");
    Kind added{.name = text_of(name, ""), .start = start, .bytes = bytes, .record_bytes = record_bytes};
    if (count != 0) added.offsets.assign(offsets, offsets + count);
    *kind = of(source).add_kind(std::move(added));
  });
}

int feedrate_source_read(feedrate_source* source, unsigned kind, std::uint64_t first, std::uint64_t count, void* place,
                         char* error, std::size_t room) {
  return guarded(error, room, [&] { of(source).read(kind, first, count, place); });
}

int feedrate_source_read_batch(feedrate_source* source, const feedrate_record* records, std::size_t count, char* error,
                               std::size_t room) {
  return guarded(error, room, [&] { of(source).read_batch(records_of(records, count)); });
}

int feedrate_source_read_bytes(feedrate_source* source, std::uint64_t start, std::uint64_t bytes, void* place,
                               char* error, std::size_t room) {
  return guarded(error, room, [&] { of(source).read_bytes(start, bytes, place); });
}

int feedrate_source_write(feedrate_source* source, unsigned kind, std::uint64_t first, std::uint64_t count,
                          const void* place, char* error, std::size_t room) {
  return guarded(error, room, [&] { of(source).write(kind, first, count, place); });
}

int feedrate_source_sync(feedrate_source* source, char* error, std::size_t room) {
  return guarded(error, room, [&] { of(source).sync(); });
}

feedrate_pending* feedrate_source_start_batch(feedrate_source* source, const feedrate_record* records,
                                              std::size_t count, int in_order, void* stream, char* error,
                                              std::size_t room) {
  feedrate_pending* started = nullptr;
  guarded(error, room, [&] {
    const std::vector<Record> batch = records_of(records, count);
    Source& opened = of(source);
    started = new feedrate_pending{opened.read_batch_async(batch, in_order != 0 ? Order::in(stream) : Order{})};
  });
  return started;
}

int feedrate_pending_wait(feedrate_pending* pending, double seconds, int* ended, char* error, std::size_t room) {
  if (ended != nullptr) *ended = 0;
  return guarded(error, room, [&] {
    if (pending == nullptr) throw BadInput("pending", "null", "a read that was started");
    constexpr double kLongest = 1e9;
    const std::chrono::duration<double> limit(seconds < 0 ? kLongest : std::min(seconds, kLongest));
    try {
      const bool done = pending->pending.wait_for(std::chrono::duration_cast<std::chrono::nanoseconds>(limit));
      if (ended != nullptr) *ended = done ? 1 : 0;
    } catch (...) {
      if (ended != nullptr) *ended = 1;
      throw;
    }
  });
}

void feedrate_pending_release(feedrate_pending* pending) { delete pending; }

nvme_gpu_request* nvme_gpu_create_request(const char* path) {
  nvme_gpu_request* made = nullptr;
  printed([&](char* error, std::size_t room) {
    made = feedrate_source_open(&path, 1, nullptr, error, room);
    return made == nullptr ? kFailed : 0;
  });
  return made;
}

int nvme_gpu_add_kind(nvme_gpu_request* request, const char* name, std::uint64_t start, std::uint64_t bytes,
                      std::uint64_t record_bytes) {
  unsigned kind = 0;
  const bool added = printed([&](char* error, std::size_t room) {
    return feedrate_source_add_kind(request, name, start, bytes, record_bytes, nullptr, 0, &kind, error, room);
  });
  return added ? static_cast<int>(kind) : -1;
}

int read_nvme_kind(nvme_gpu_request* request, int kind, std::uint64_t first, std::uint64_t count, void* place) {
  const bool read = printed([&](char* error, std::size_t room) {
    return feedrate_source_read(request, static_cast<unsigned>(kind), first, count, place, error, room);
  });
  return read ? 0 : -1;
}

int nvme_gpu_batch_read(nvme_gpu_request* request, const feedrate_record* records, std::size_t count) {
  const bool read = printed(
      [&](char* error, std::size_t room) { return feedrate_source_read_batch(request, records, count, error, room); });
  return read ? 0 : -1;
}

void nvme_gpu_release_request(nvme_gpu_request* request) { feedrate_source_close(request); }
