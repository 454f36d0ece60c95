#include "experiments/feeding/stamped.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace feedrate {

PayloadPool Stamped::pool_of(const Workload& workload, std::size_t payload) {
  constexpr std::uint64_t kSeed = 2;
  constexpr std::size_t kMaxBytes = std::size_t{256} << 20, kLeast = 4;
  const std::size_t result = workload.result_bytes(payload);
  const auto made = [&](std::uint64_t id) {
    std::vector<std::byte> message(stride_of(payload));
    workload.fill(kSeed, id, payload, {message.data(), message.size(), 1});
    message.erase(message.begin(), message.begin() + sizeof(Header));
    return message;
  };
  const std::vector<std::byte> rest = made(0);
  return {payload, result,
          [&](std::uint64_t entry, std::byte* to) {
            std::memcpy(to, rest.data(), payload);
            std::memcpy(to, made(entry).data(), kStampBytes);
          },
          [&](const std::byte* from, std::byte* to) { workload.reference(from, payload, to); },
          std::bit_floor(std::clamp(kMaxBytes / (payload + result), kLeast, PayloadPool::kEntries))};
}

Stamped::Stamped(const Workload& workload, const PayloadPool& pool, unsigned producers)
    : workload_(workload), pool_(pool), slots_(producers) {}

std::string Stamped::how_checked(std::size_t payload) const {
  return fmt::format("the stamp{} of each result; 1 of {} in full: {}", workload_.exact() ? " and the checksum" : "",
                     kSampledOneOf, workload_.how_checked(payload));
}

void Stamped::fill(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages messages) const {
  auto& with_rest = slots_[producer_of(first_id)].with_rest;
  for (std::size_t i = 0; i < messages.count; ++i) {
    const std::uint64_t id = first_id + i;
    const Messages one = messages.from(i).first(1);
    if (sampled(seed, id)) {
      workload_.fill(seed, id, payload, one);
      with_rest.erase(one.base);
      continue;
    }
    const bool first_use = with_rest.insert(one.base).second;
    std::memcpy(one.payload(0), pool_.payload(entry_of(seed, id)), first_use ? payload : kStampBytes);
    one.header(0) = {id, static_cast<std::uint32_t>(payload), 0};
  }
}

Checked Stamped::check(std::uint64_t seed, std::size_t payload, ConstMessages results, std::uint64_t* ids) const {
  return check_each(results, ids, [&](std::size_t i, std::uint64_t id) {
    return is_result_of(seed, id, payload, results.from(i).first(1));
  });
}

bool Stamped::is_result_of(std::uint64_t seed, std::uint64_t id, std::size_t payload,
                           const ConstMessages& result) const {
  if (sampled(seed, id)) return workload_.matches(seed, id, payload, result);
  const std::size_t bytes = workload_.result_bytes(payload), entry = entry_of(seed, id);
  const Header& header = result.header(0);
  return header.length == bytes && (!workload_.exact() || header.checksum == pool_.checksum(entry)) &&
         workload_.same(pool_.result(entry), result.payload(0), std::min(bytes, kStampBytes));
}

void Stamped::answer(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages results) const {
  const std::size_t bytes = workload_.result_bytes(payload);
  for (std::size_t i = 0; i < results.count; ++i) {
    const std::uint64_t id = first_id + i;
    if (sampled(seed, id)) {
      workload_.answer(seed, id, payload, results.from(i).first(1));
      continue;
    }
    const std::size_t entry = entry_of(seed, id);
    std::memcpy(results.payload(i), pool_.result(entry), bytes);
    results.header(i) = {id, static_cast<std::uint32_t>(bytes), pool_.checksum(entry)};
  }
}

std::string Stamped::difference(std::uint64_t seed, std::uint64_t id, std::size_t payload,
                                const ConstMessages& result) const {
  if (sampled(seed, id)) return workload_.difference(seed, id, payload, result);
  return difference_from({pool_.result(entry_of(seed, id)), workload_.result_bytes(payload)}, result);
}

}  // namespace feedrate
