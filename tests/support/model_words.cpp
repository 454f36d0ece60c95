#include "tests/support/model_words.hpp"

#include <bit>
#include <stdexcept>

namespace feedrate::test {

void ModelWords::declare(const void* address, std::string name, Explorer::Word kind, ModelValue initial) {
  if (locations_.size() == kMaxLocations) throw std::invalid_argument("too many words");
  if (!index_.emplace(address, locations_.size()).second) throw std::invalid_argument(name + " is declared twice");
  locations_.push_back({std::move(name), initial, kind, kMaxThreads, {}, {}});
}
void ModelWords::reset() {
  for (Location& location : locations_) {
    location.history.assign(1, {location.initial, {}});
    location.writer = kMaxThreads;
    location.read.fill(0);
  }
}
std::optional<std::size_t> ModelWords::find(const void* address) const {
  const auto found = index_.find(address);
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

ModelValue ModelWords::load(View& view, std::size_t l, std::size_t at, bool acquire) const {
  const Message& message = locations_[l].history[at];
  view.at[l] = static_cast<std::uint8_t>(at);
  if (acquire) view.join(message.view);
  return message.value;
}
std::string ModelWords::store(View& view, std::size_t thread, std::size_t l, const ModelValue& value, bool release,
                              bool modifies) {
  Location& location = locations_[l];
  if (location.history.size() >= kMaxValues) return "too many stores to " + location.name;
  if (location.kind == Explorer::Word::one_writer && location.writer != kMaxThreads && location.writer != thread) {
    return "stores to " + location.name + " after another thread did; the word is declared for one writer";
  }
  location.writer = thread;
  View released = modifies ? location.history.back().view : View{};
  if (release) released.join(view);
  view.at[l] = released.at[l] = static_cast<std::uint8_t>(location.history.size());
  location.history.push_back({value, released});
  return {};
}
void ModelWords::note_plain_load(const View& view, std::size_t thread, std::size_t l) {
  locations_[l].read[thread] = view.loads[thread];
}
std::optional<std::size_t> ModelWords::unknown_reader(const View& view, std::size_t thread, std::size_t l) const {
  for (std::size_t t = 0; t < kMaxThreads; ++t) {
    if (t != thread && view.loads[t] < locations_[l].read[t]) return t;
  }
  return std::nullopt;
}

std::uint64_t ModelWords::hash(const View& oldest, const ThreadOrder& order) const {
  std::uint64_t hash = 0;
  for (std::size_t l = 0; l < locations_.size(); ++l) {
    const Location& location = locations_[l];
    for (std::size_t i = std::min<std::size_t>(newest(l), oldest.at[l]); i <= newest(l); ++i) {
      const Message& message = location.history[i];
      hash = mix(hash, l << 32 | i);
      hash = mix(hash, message.value.low);
      hash = mix(hash, message.value.high);
      if (location.kind == Explorer::Word::plain) continue;
      View view = message.view;
      view.join(oldest);
      hash = mix(hash, view, locations_.size(), order);
    }
    if (location.kind == Explorer::Word::plain) {
      hash = mix(hash, std::bit_cast<std::uint64_t>(reordered(location.read, order)));
    }
  }
  return hash;
}

}  // namespace feedrate::test
