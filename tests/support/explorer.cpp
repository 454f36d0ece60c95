// The fortified longjmp reports a jump to another stack as an error.
#undef _FORTIFY_SOURCE
#include "tests/support/explorer.hpp"

#include <fmt/format.h>
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <stdexcept>
#include <unordered_set>

#include "tests/support/model_words.hpp"

namespace feedrate::test {
namespace {

constexpr std::size_t kStackBytes = 128 << 10;
constexpr std::size_t kLongest = 20'000;  // scheduling points of an execution

enum class Pending : std::uint8_t { running, load, store, modify, paused, done };

struct Sim {
  std::string name;
  std::function<void()> body;
  Pending pending = Pending::running;
  std::size_t location = 0;
  View view;
  // The state of the thread's code: hashes of the values it accessed before its last pause and since then.
  std::uint64_t before = 0, since = 0, vain = 0;
  bool stored = false, alike = false;
  std::array<std::uint8_t, kMaxLocations> seen;  // indexed by location: the oldest value read since the last pause

  static constexpr std::uint8_t kUnseen = ModelWords::kMaxValues;
  void forget() { seen.fill(kUnseen); }
};

/// A stack on which thread bodies run, one after another. An abandoned body is left with a jump.
struct Fiber {
  std::unique_ptr<std::byte[]> stack{new std::byte[kStackBytes]};
  ucontext_t start;
  jmp_buf here, top;
  bool started = false;
};

struct Choice {
  unsigned of, chosen;
};

Explorer* exploring = nullptr;

}  // namespace

struct Explorer::Impl {
  ModelWords words;
  std::array<Fiber, kMaxThreads> fibers;
  std::vector<Sim> sims;
  std::size_t now = 0;  // the running thread
  jmp_buf main;

  std::vector<Choice> trail;
  std::size_t depth = 0;
  std::unordered_set<std::uint64_t> known;
  std::uint64_t max_states = 0;
  enum class End { whole, known_state, violation, limit } end = End::whole;
  std::string violation;
  std::vector<std::string> log;
  bool logging = false;

  Sim& me() { return sims[now]; }
  std::size_t location_of(const void* address) {
    const std::optional<std::size_t> found = words.find(address);
    if (!found) fail("access to memory that was not declared");
    return *found;
  }
  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    if (logging) log.push_back(fmt::format("{:<10} ", me().name) + fmt::format(format, std::forward<Args>(args)...));
  }
  std::string text(const ModelValue& value) const {
    return value.high == 0 ? fmt::format("{:#x}", value.low) : fmt::format("{:#x}:{:#x}", value.high, value.low);
  }

  // --- switching between stacks ----------------------------------------------------------------------------------
  static void enter() {
    Impl* const impl = exploring->impl_.get();
    const std::size_t mine = impl->now;
    // Bodies that are abandoned halfway return to this point.
    if (_setjmp(impl->fibers[mine].top) == 0) impl->fibers[mine].started = true;
    impl->sims[mine].body();
    impl->sims[mine].pending = Pending::done;
    impl->note("ends");
    impl->schedule();
    std::abort();  // a finished thread is never resumed
  }
  /// Switches from the running stack to the stack of thread `next`.
  void go(std::size_t next) {
    now = next;
    if (fibers[next].started) _longjmp(fibers[next].here, 1);
    setcontext(&fibers[next].start);
  }
  void start(std::size_t next) {
    if (_setjmp(main) != 0) return;
    now = next;
    if (fibers[next].started) _longjmp(fibers[next].top, 1);
    go(next);
  }
  [[noreturn]] void back_to_main(End how) {
    end = how;
    _longjmp(main, 1);
  }
  [[noreturn]] void fail(std::string what) {
    violation = fmt::format("{}: {}", me().name, what);
    back_to_main(End::violation);
  }

  // --- scheduling ------------------------------------------------------------------------------------------------
  bool beginning = false;
  /// Called after the running thread has set its next access; returns when it may perform this access.
  void schedule() {
    if (beginning) {  // each thread runs up to its first access before the first choice
      if (_setjmp(fibers[now].here) == 0) back_to_main(End::whole);
      return;
    }
    const std::size_t from = now;
    const std::size_t next = pick();
    if (next == from) return;
    if (_setjmp(fibers[from].here) == 0) go(next);
  }
  bool sees_news(const Sim& sim) const {
    for (std::size_t l = 0; l < words.size(); ++l) {
      if (sim.seen[l] != Sim::kUnseen && sim.seen[l] < words.newest(l)) return true;
    }
    return false;
  }
  unsigned ways_of(const Sim& sim) const {
    switch (sim.pending) {
      case Pending::load:
      case Pending::store:
      case Pending::modify:
        return 1;
      default:
        return 0;
    }
  }
  std::size_t pick() {
    // A thread that can continue after a pause only advances to its next access, so there is nothing to choose.
    for (std::size_t t = 0; t < sims.size(); ++t) {
      if (sims[t].pending != Pending::paused || !sees_news(sims[t])) continue;
      sims[t].pending = Pending::running;
      return t;
    }
    unsigned of = 0;
    bool all_done = true;
    for (const Sim& sim : sims) {
      of += ways_of(sim);
      all_done = all_done && sim.pending == Pending::done;
    }
    if (all_done) back_to_main(End::whole);
    if (of == 0) {
      std::string waiting;
      for (const Sim& sim : sims) {
        if (sim.pending != Pending::done) waiting += " " + sim.name;
      }
      fail("deadlock: these threads wait forever:" + waiting);
    }
    unsigned chosen = choose_one_of(of);
    for (std::size_t i = 0;; ++i) {
      Sim& sim = sims[(now + i) % sims.size()];
      if (ways_of(sim) == 0 || chosen-- != 0) continue;
      sim.pending = Pending::running;
      return (now + i) % sims.size();
    }
  }
  unsigned choose_one_of(unsigned of) {
    if (depth == trail.size()) {
      if (depth == kLongest) fail("the execution does not end");
      if (!known.insert(state()).second) back_to_main(End::known_state);
      if (known.size() > max_states) back_to_main(End::limit);
      trail.push_back({of, 0});
    }
    return trail[depth++].chosen;
  }
  /// Orders interchangeable threads by each thread's knowledge and position.
  ThreadOrder order() const {
    ThreadOrder order;
    std::iota(order.begin(), order.end(), std::uint8_t{0});
    std::array<std::uint64_t, kMaxThreads> key{};
    for (std::size_t t = 0; t < sims.size(); ++t) {
      if (!sims[t].alike) continue;
      key[t] = mix_locations(where(0, sims[t]), sims[t].view, words.size());
      // Insertion sort among the earlier threads.
      for (std::size_t at = t, before = t; before-- > 0;) {
        if (!sims[before].alike) continue;
        if (key[order[before]] <= key[order[at]]) break;
        std::swap(order[before], order[at]);
        at = before;
      }
    }
    return order;
  }
  static std::uint64_t where(std::uint64_t hash, const Sim& sim) {
    hash = mix(hash, static_cast<std::uint64_t>(sim.pending) << 32 | sim.location);
    return sim.pending == Pending::done ? hash : mix(mix(mix(hash, sim.before), sim.since), sim.vain);
  }
  std::uint64_t state() const {
    const ThreadOrder order = this->order();
    View oldest;  // the knowledge shared by all threads that are still running
    oldest.loads.fill(0xFF);
    oldest.at.fill(0xFF);
    for (const Sim& sim : sims) {
      if (sim.pending == Pending::done) continue;
      oldest.meet(sim.view);
    }
    std::uint64_t hash = words.hash(oldest, order);
    for (std::size_t t = 0; t < sims.size(); ++t) {
      const Sim& sim = sims[order[t]];
      hash = where(hash, sim);
      if (sim.pending == Pending::done) continue;
      hash = mix(hash, sim.view, words.size(), order);
      for (std::size_t l = 0; l < words.size(); ++l) {
        if (sim.seen[l] != Sim::kUnseen) hash = mix(hash, l << 8 | sim.seen[l]);
      }
    }
    return hash;
  }

  // --- what threads do -------------------------------------------------------------------------------------------
  void got(std::size_t location, const ModelValue& value) {
    me().since = mix(mix(mix(me().since, location + 1), value.low), value.high);
  }
  void stored(std::size_t location, const ModelValue& value) {
    got(location + 2 * kMaxLocations, value);
    me().stored = true;
  }
  void append(std::size_t l, const ModelValue& value, bool release, bool modifies = false) {
    std::string wrong = words.store(me().view, now, l, value, release, modifies);
    if (!wrong.empty()) fail(std::move(wrong));
    stored(l, value);
  }
  void watch(std::size_t l, std::size_t read) {
    std::uint8_t& seen = me().seen[l];
    seen = std::min(seen, static_cast<std::uint8_t>(read));
  }
  ModelValue load(const void* address, bool acquire) {
    const std::size_t l = location_of(address);
    // Loading a value that is already old has the same effect now or later. A value that becomes old while the thread
    // waits for its turn is loaded in the execution in which its turn is earlier. So a load either returns one of the
    // old values at once or, at the thread's turn, the newest value.
    const std::size_t known_from = me().view.at[l], newest = words.newest(l);
    me().location = l;
    std::size_t at = newest;
    if (newest != known_from) at -= choose_one_of(static_cast<unsigned>(newest - known_from) + 1);
    if (at == newest) {
      me().pending = Pending::load;
      schedule();
      at = words.newest(l);
    }
    const ModelValue value = words.load(me().view, l, at, acquire);
    watch(l, at);
    got(l, value);
    note("reads {} = {}{}", words.name(l), text(value), at == words.newest(l) ? "" : ", an old value");
    return value;
  }
  void store(const void* address, const ModelValue& value, bool release) {
    const std::size_t l = location_of(address);
    if (words.kind(l) == Word::many_writers) {
      me().pending = Pending::store;
      me().location = l;
      schedule();
    }  // otherwise the store can be issued at once: threads that must not see it yet may still load an older value
    append(l, value, release);
    note("stores {} = {}{}", words.name(l), text(value), release ? ", release" : "");
  }
  ModelValue modify(const void* address, const std::function<bool(ModelValue&)>& change, bool acquire, bool release) {
    const std::size_t l = location_of(address);
    me().pending = Pending::modify;
    me().location = l;
    schedule();
    const std::size_t at = words.newest(l);
    View acquired = me().view;
    const ModelValue before = words.load(acquired, l, at, acquire);
    ModelValue value = before;
    const bool changes = change(value);
    me().view.at[l] = static_cast<std::uint8_t>(at);
    got(l, before);
    watch(l, at + (changes ? 1 : 0));
    if (!changes) {
      note("finds {} = {}", words.name(l), text(before));
      return before;
    }
    me().view = acquired;
    append(l, value, release, true);
    note("changes {} from {} to {}", words.name(l), text(before), text(value));
    return before;
  }
  /// Loads data that is protected by the order of other words: exactly one value may be visible.
  ModelValue load_plain(const void* address) {
    const std::size_t l = location_of(address);
    if (!words.knows_newest(me().view, l)) fail("reads " + words.name(l) + " while another thread writes it");
    if (++me().view.loads[now] == 0xFF) fail("too many plain loads");
    words.note_plain_load(me().view, now, l);
    const ModelValue value = words.load(me().view, l, words.newest(l), false);
    got(l, value);
    note("reads {} = {}", words.name(l), text(value));
    return value;
  }
  void store_plain(const void* address, const ModelValue& value) {
    const std::size_t l = location_of(address);
    if (!words.knows_newest(me().view, l)) fail("writes " + words.name(l) + " while another thread writes it");
    if (const std::optional<std::size_t> reader = words.unknown_reader(me().view, now, l)) {
      fail("writes " + words.name(l) + " while " + sims[*reader].name + " reads it");
    }
    append(l, value, false);
    note("writes {} = {}", words.name(l), text(value));
  }
  void mark(std::uint64_t state) {
    me().before = state;
    me().since = me().vain = 0;
    me().stored = false;
  }
  void pause() {
    Sim& sim = me();
    if (sim.stored || sim.since != sim.vain) {
      sim.before = mix(sim.before, sim.since);
      sim.vain = sim.stored ? 0 : sim.since;
    }  // otherwise it saw the same values as before, and its state is unchanged
    sim.since = 0;
    sim.stored = false;
    sim.pending = Pending::paused;
    note("waits");
    schedule();
    me().forget();
  }
  unsigned choose(unsigned n) {
    const unsigned chosen = n == 1 ? 0 : choose_one_of(n);
    got(kMaxLocations, {chosen, n});
    return chosen;
  }

  // --- one execution ---------------------------------------------------------------------------------------------
  void run(const std::function<std::unique_ptr<ModelProgram>()>& make) {
    words.reset();
    const std::unique_ptr<ModelProgram> program = make();
    std::vector<ModelThread> threads = program->threads();
    if (threads.size() > kMaxThreads) throw std::invalid_argument("too many threads");
    sims.assign(threads.size(), {});
    for (std::size_t t = 0; t < threads.size(); ++t) {
      sims[t].name = std::move(threads[t].name);
      sims[t].body = std::move(threads[t].body);
      sims[t].alike = threads[t].alike;
      sims[t].forget();
    }
    depth = 0;
    beginning = true;
    for (std::size_t t = 0; t < sims.size(); ++t) {
      end = End::whole;
      start(t);
      if (end != End::whole) return;
    }
    beginning = false;
    if (_setjmp(main) == 0) go(pick());
  }
  bool next_trail() {
    while (!trail.empty() && trail.back().chosen + 1 == trail.back().of) trail.pop_back();
    if (trail.empty()) return false;
    ++trail.back().chosen;
    return true;
  }
};

Explorer::Explorer() : impl_(std::make_unique<Impl>()) {
  for (Fiber& fiber : impl_->fibers) {
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.get();
    fiber.start.uc_stack.ss_size = kStackBytes;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, Impl::enter, 0);
  }
}
Explorer::~Explorer() = default;
Explorer& Explorer::current() { return *exploring; }

void Explorer::declare(const void* address, std::string name, Word kind, ModelValue initial) {
  impl_->words.declare(address, std::move(name), kind, initial);
}

Explored Explorer::explore(const std::function<std::unique_ptr<ModelProgram>()>& make, std::uint64_t max_states) {
  Impl& impl = *impl_;
  exploring = this;
  impl.max_states = max_states;
  impl.trail.clear();
  impl.known.clear();
  Explored result;
  do {
    impl.run(make);
    ++result.executions;
    if (impl.end == Impl::End::whole) ++result.ended;
    if (impl.end == Impl::End::limit) break;
    if (impl.end == Impl::End::violation) {
      result.violation = impl.violation;
      impl.logging = true;  // repeats the same execution with a log
      impl.log.clear();
      impl.run(make);
      impl.logging = false;
      for (const std::string& line : impl.log) result.schedule += line + "\n";
      break;
    }
  } while (impl.next_trail());
  result.complete = impl.end != Impl::End::limit && impl.end != Impl::End::violation;
  result.states = impl.known.size();
  exploring = nullptr;
  return result;
}

ModelValue Explorer::load(const void* address, bool acquire) { return impl_->load(address, acquire); }
void Explorer::store(const void* address, ModelValue value, bool release) { impl_->store(address, value, release); }
ModelValue Explorer::modify(const void* address, const std::function<bool(ModelValue&)>& change, bool acquire,
                            bool release) {
  return impl_->modify(address, change, acquire, release);
}
ModelValue Explorer::load_plain(const void* address) { return impl_->load_plain(address); }
void Explorer::store_plain(const void* address, ModelValue value) { impl_->store_plain(address, value); }
void Explorer::mark(std::uint64_t state) { impl_->mark(state); }
void Explorer::pause() { impl_->pause(); }
unsigned Explorer::choose(unsigned n) { return impl_->choose(n); }
void Explorer::fail(std::string what) { impl_->fail(std::move(what)); }

Unit ModelMemory::load_unit(const Unit& at) { return std::bit_cast<Unit>(Explorer::current().load(&at, false)); }
void ModelMemory::store_unit(Unit& at, const Unit& unit) {
  Explorer::current().store(&at, std::bit_cast<ModelValue>(unit), false);
}

}  // namespace feedrate::test
