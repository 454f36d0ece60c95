// The extension module feedrate._core: the GPU ring for Python. feedrate/ring.py wraps it in the public API.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include "function_kernel.hpp"
#include "interpreter.hpp"
#include "parts.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace std::chrono_literals;

namespace feedrate::python {

void bind_dlpack(nb::module_&);   // dlpack.cpp
void bind_storage(nb::module_&);  // storage.cpp
void bind_store(nb::module_&);    // store.cpp
const char* revision();           // revision.cpp

namespace {

/// Access to the bytes of an object that supports the buffer protocol.
class Contiguous {
 public:
  explicit Contiguous(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~Contiguous() { PyBuffer_Release(&view_); }
  Contiguous(const Contiguous&) = delete;
  Contiguous& operator=(const Contiguous&) = delete;
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

/// Python's handle to a mailbox, which messages in flight keep alive as well.
struct MailboxHandle {
  explicit MailboxHandle(bool quiet) : mailbox(std::make_shared<Mailbox>(quiet)) {}
  std::shared_ptr<Mailbox> mailbox;
};

constexpr std::size_t kBrief = 64;  // below this many messages, headers are written with the interpreter lock held

/// Configuration of the ring for single messages. If the messages fit, the ring uses the fastest notification: ready
/// flags that many small teams poll. Each address is processed by an entire block and announced by a counter, which
/// also orders the data at that address.
RingConfig for_calls(RingConfig config, bool gpu, bool by_address) {
  if (by_address) {
    config.batch = 1;
    config.block = gpu ? 512 : 32;
    config.granularity = Granularity::block;
    return config;
  }
  config.lanes = std::min(config.lanes, 4u);
  config.notify = Notify::flags;
  for (const unsigned teams : {8u, 2u}) {
    config.pollers = teams;
    config.mirrors = gpu ? teams : 1;
    config.batch = gpu ? 1 : 8;
    if ((gpu || teams == 2) && why_unsupported(config).empty()) return config;
  }
  config.notify = Notify::counter;
  config.pollers = config.mirrors = 1;
  config.batch = 64;
  return config;
}

/// Creates the kernel of a ring from "echo", a CompiledWork, or a Python function.
std::unique_ptr<Kernel> kernel_from(const nb::object& work, bool by_address) {
  if (nb::isinstance<CompiledWork>(work)) return make_compiled(nb::cast<const CompiledWork&>(work));
  if (!nb::isinstance<nb::str>(work)) return std::make_unique<FunctionKernel>(work);
  const auto name = nb::cast<std::string>(work);
  if (name != "echo") throw BadInput("work", name, "echo, a kernel, or a function");
  return make_echo(by_address);
}

class Ring {
 public:
  Ring(const nb::object& work, const std::string& device, unsigned index, std::size_t message_bytes,
       std::size_t result_bytes, unsigned lanes, std::size_t capacity, const std::string& idle, double park_after,
       double longest_stay, bool by_address)
      : message_bytes_(message_bytes), parts_(std::make_shared<Parts>()) {
    parts_->kernel = kernel_from(work, by_address);
    function_ = dynamic_cast<FunctionKernel*>(parts_->kernel.get());
    const Unlocked unlocked;
    parts_->device = open_device(device, index);
    device_ = std::string(parts_->device->kind());
    name_ = parts_->device->info().name;
    const bool gpu = device_ == "cuda";
    RingConfig config;
    config.message_bytes = message_bytes;
    config.result_bytes = result_bytes;
    config.lanes = lanes;
    config.capacity = capacity;
    config.idle = idle == "spin" ? RingIdle::spin : idle == "backoff" ? RingIdle::backoff : RingIdle::park;
    config.park_after = std::chrono::microseconds(static_cast<std::int64_t>(park_after * 1e6));
    config.results = ResultOrder::as_finished;
    parts_->calls = std::make_unique<Calls>(*parts_->device, *parts_->kernel, for_calls(config, gpu, by_address));
    config.batch = capacity;
    config.block = 512;
    config.results = ResultOrder::in_order;
    parts_->views = std::make_unique<Views>(*parts_->device, *parts_->kernel, config);
    if (by_address) parts_->order = std::make_unique<Order>(gpu);
    if (config.idle == RingIdle::park) {
      const std::chrono::nanoseconds stay(static_cast<std::int64_t>(longest_stay * 1e9));
      parts_->watchdog = std::make_unique<Watchdog>(*parts_->calls, *parts_->views, stay);
    }
  }
  ~Ring() { drop(); }

  /// Returns the result as bytes, a tuple (fault, ending) that ring.py converts to an exception, or None on a timeout.
  nb::object call(nb::handle payload, double timeout) {
    const auto parts = checked_parts();
    Ticket* const ticket = send(*parts, payload, nullptr, nullptr, timeout);
    if (ticket == nullptr) return nb::none();
    return answer(*parts, ticket, timeout);
  }

  /// Returns false if every lane stays full until the timeout. take() returns `owner` with the result.
  bool submit(nb::handle payload, const MailboxHandle& handle, nb::object owner, double timeout) {
    const auto parts = checked_parts();
    if (send(*parts, payload, handle.mailbox, owner.ptr(), timeout) == nullptr) return false;
    owner.release();  // take() takes over the reference
    return true;
  }

  /// Returns the results that have arrived for a mailbox, as [(owner, payload or None, fault, ending)].
  nb::list take(const MailboxHandle& handle) {
    const auto parts = parts_;
    nb::list found;
    if (!parts || !parts->of_this_process()) return found;  // the parent shares the descriptor
    if (handle.mailbox->quiet()) parts->calls->collect();  // a mailbox of gpuqueue, whose work is not a Python function
    for (Ticket* const ticket : handle.mailbox->take()) {
      const nb::object owner = nb::steal<nb::object>(static_cast<PyObject*>(ticket->owner));
      nb::object payload = nb::none();
      if (ticket->ending == Ending::ok) payload = nb::bytes(ticket->payload.data(), ticket->payload.size());
      found.append(nb::make_tuple(owner, payload, static_cast<int>(ticket->fault), static_cast<int>(ticket->ending)));
      if (parts->calls) parts->calls->give_back(ticket);
    }
    return found;
  }

  /// Returns an array (messages, stride) of slots, or None if there is no room before the timeout.
  nb::object reserve(std::size_t n, double timeout) {
    const auto found = block([](Views& views, std::size_t most) { return views.reserve(most); }, n, timeout);
    return found ? slots(*found) : nb::none();
  }
  /// Returns (array, whether some results are faults), or None if no result arrives before the timeout.
  nb::object poll(std::size_t n, double timeout) {
    const auto found = block([](Views& views, std::size_t most) { return views.poll(most); }, n, timeout);
    return found ? nb::object(nb::make_tuple(slots(*found), found->failed)) : nb::none();
  }
  void publish(std::size_t n) {
    const auto parts = checked_parts();
    const Unlocked unlocked;
    parts->views->publish(n);
  }
  void release() { checked_parts()->views->release(); }

  void close(bool now, double patience) {
    if (!parts_ || !parts_->of_this_process()) return;
    const auto parts = parts_;
    const Unlocked unlocked;
    stop(*parts, now ? RingStop::now : RingStop::drain,
         std::chrono::nanoseconds(static_cast<std::int64_t>(patience * 1e9)));
    closed_ = true;
  }

  void pause(bool on) {
    if (closed_ && !on) return;
    const auto parts = checked_parts();
    const Unlocked unlocked;
    parts->calls->pause(on);
    parts->views->pause(on);
  }
  bool parked() {
    const auto parts = checked_parts();
    const Unlocked unlocked;
    return parts->calls->parked() && parts->views->parked();
  }
  nb::dict stats() {
    const auto parts = checked_parts();
    RingStats single, many;
    {
      const Unlocked unlocked;
      single = parts->calls->stats();
      many = parts->views->stats();
    }
    nb::dict counts;
    counts["sent"] = single.published + many.published;
    counts["answered"] = single.released + many.released;
    counts["parked_lanes"] = single.parked_lanes + many.parked_lanes;
    counts["restarts"] = single.restarts + many.restarts;
    return counts;
  }
  std::uint64_t in_flight() { return checked_parts()->calls->in_flight(); }
  /// The stream to pass to DLPack, which orders tensors before it; only for a ring that passes tensors by address.
  std::uintptr_t stream() const { return checked_parts()->order->stream(); }
  /// Waits until the tensors are ready on that stream; only for a ring that passes tensors by address.
  void ordered() const {
    const auto parts = checked_parts();
    const Unlocked unlocked;
    parts->order->wait();
  }
  const std::string& device() const { return device_; }
  const std::string& device_name() const { return name_; }
  bool closed() const { return closed_; }

  /// The work function if only this ring keeps it alive, for the garbage collector.
  nb::handle function() const {
    if (function_ == nullptr) return {};
    const bool alone = memory_ ? parts_.use_count() == 2 && Py_REFCNT(memory_.ptr()) == 1 : parts_.use_count() == 1;
    return alone ? function_->function() : nb::handle();
  }
  /// Closes the ring and releases its parts. GPU memory is freed without the interpreter lock, because other threads
  /// of the ring may wait for the lock. Closing waits for the ring's own function; if this thread is running that
  /// function, another thread closes the ring.
  void drop() {
    if (!parts_) return;
    closed_ = true;
    memory_.reset();
    auto last = [parts = std::move(parts_)]() mutable {
      if (parts->of_this_process() && parts->calls && parts->views) stop(*parts, RingStop::now, {});
      parts.reset();
    };
    if (function_ != nullptr && function_->serves_here()) {
      std::thread(std::move(last)).detach();
    } else {
      const Unlocked unlocked;
      last();
    }
  }

 private:
  static void stop(Parts& parts, RingStop how, std::chrono::nanoseconds patience) {
    parts.watchdog.reset();
    parts.calls->stop(how, patience);
    parts.views->stop(how, patience);
  }
  std::shared_ptr<Parts> checked_parts() const {
    if (!parts_) throw Failure("the ring is closed");
    if (!parts_->of_this_process())
      throw Failure("this ring was created before a fork; only the parent process can use it");
    if (closed_) throw Failure("the ring is closed");
    return parts_;
  }

  /// Calls `attempt` until it returns something, the timeout expires, or the user presses Ctrl-C. `brief` means that an
  /// attempt takes less time than a handover of the interpreter lock to another thread.
  template <class Attempt>
  auto until(double timeout, bool brief, Attempt attempt) const -> decltype(attempt()) {
    const auto start = std::chrono::steady_clock::now();
    {
      // Threads that run a Python function need the interpreter lock before they can release a resource that an attempt
      // waits for.
      std::optional<Unlocked> unlocked;
      if (!brief || function_ != nullptr) unlocked.emplace();
      if (auto found = attempt()) return found;
    }
    while (timeout != 0) {
      {
        const Unlocked unlocked;
        const auto slice = std::chrono::steady_clock::now() + kSlice;
        do {
          if (auto found = attempt()) return found;
          std::this_thread::yield();
        } while (std::chrono::steady_clock::now() < slice);
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (timeout > 0 && std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > timeout) {
        break;
      }
    }
    return {};
  }

  Ticket* send(Parts& parts, nb::handle payload, const std::shared_ptr<Mailbox>& mailbox, void* owner,
               double timeout) const {
    const Contiguous bytes(payload);
    if (bytes.bytes().size() > message_bytes_) {
      throw BadInput("a message of " + std::to_string(bytes.bytes().size()) + " bytes is longer than message_bytes, " +
                     std::to_string(message_bytes_));
    }
    return until(timeout, true, [&] { return parts.calls->try_submit(bytes.bytes(), mailbox, owner); });
  }

  static nb::object answer(Parts& parts, Ticket* ticket, double timeout) {
    const auto start = std::chrono::steady_clock::now();
    while (true) {
      bool arrived = false;
      {
        const Unlocked unlocked;
        arrived = parts.calls->wait(*ticket, kSlice);
      }
      if (arrived) break;
      const bool interrupted = PyErr_CheckSignals() != 0;
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
      if (interrupted || (timeout >= 0 && waited.count() > timeout)) {
        parts.calls->give_back(ticket);
        if (interrupted) throw nb::python_error();
        return nb::none();
      }
    }
    nb::object result;
    if (ticket->ending == Ending::ok) {
      result = nb::bytes(ticket->payload.data(), ticket->payload.size());
    } else {
      result = nb::make_tuple(static_cast<int>(ticket->fault), static_cast<int>(ticket->ending));
    }
    parts.calls->give_back(ticket);
    return result;
  }

  template <class Ask>
  std::optional<Block> block(Ask ask, std::size_t n, double timeout) const {
    const auto parts = checked_parts();
    unsigned polls = 0;
    return until(timeout, n < kBrief, [&] {
      if (++polls % 65536 == 0) parts->views->check();
      return ask(*parts->views, n);
    });
  }
  /// Returns the slots as an array that keeps their memory alive, so that it never reads freed memory after its block.
  nb::object slots(const Block& block) {
    if (!memory_) {
      memory_ = nb::capsule(new std::shared_ptr<Parts>(checked_parts()), [](void* pointer) noexcept {
        const Unlocked unlocked;
        delete static_cast<std::shared_ptr<Parts>*>(pointer);
      });
    }
    return nb::cast(Bytes2(block.base, {block.count, block.stride}, memory_), nb::rv_policy::reference);
  }

  std::size_t message_bytes_;
  std::shared_ptr<Parts> parts_;
  nb::object memory_;  // owner of the memory of all arrays of slots
  std::string device_, name_;
  std::atomic<bool> closed_{false};
  const FunctionKernel* function_ = nullptr;  // the kernel if it is a Python function
};

/// Processes messages (n, bytes) in one launch. Returns the slots of the results (n, stride), each with a header and a
/// payload.
nb::object launch(const nb::object& work, const std::string& device_kind, unsigned index,
                  const nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>& messages,
                  std::size_t result_bytes) {
  struct Run {
    std::unique_ptr<Device> device;
    Buffer in, out;
  };
  const std::unique_ptr<Kernel> kernel = kernel_from(work, false);
  const std::size_t count = messages.shape(0), bytes = messages.shape(1);
  const auto in_stride = static_cast<std::uint32_t>(stride_of(bytes));
  const auto out_stride = static_cast<std::uint32_t>(stride_of(result_bytes));
  auto run = std::make_unique<Run>();
  {
    const Unlocked unlocked;
    run->device = open_device(device_kind, index);
    run->in = run->device->allocate_host(std::max<std::size_t>(1, count) * in_stride, HostMemory::pinned);
    run->out = run->device->allocate_host(std::max<std::size_t>(1, count) * out_stride, HostMemory::pinned);
    for (std::size_t i = 0; i < count; ++i) {
      std::byte* const slot = run->in.data() + i * in_stride;
      *reinterpret_cast<Header*>(slot) = {i, static_cast<std::uint32_t>(bytes), 0};
      std::memcpy(slot + sizeof(Header), messages.data() + i * bytes, bytes);
    }
    const auto stream = run->device->stream();
    stream->launch(*kernel, {run->in.data(), run->out.data(), in_stride, out_stride, static_cast<std::uint32_t>(count)},
                   256);
    stream->synchronize();
  }
  std::byte* const base = run->out.data();
  const nb::capsule owner(run.release(), [](void* pointer) noexcept {
    const Unlocked unlocked;
    delete static_cast<Run*>(pointer);
  });
  return nb::cast(Bytes2(base, {count, out_stride}, owner), nb::rv_policy::reference);
}

}  // namespace
}  // namespace feedrate::python

NB_MODULE(_core, m) {
  using namespace feedrate;
  using namespace feedrate::python;
  begin_interpreter();
  nb::set_leak_warnings(false);  // rings that exist until the interpreter exits are not leaks
  pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  m.attr("revision") = revision();
  m.attr("version") = FEEDRATE_VERSION;

  nb::exception<Failure>(m, "Error", PyExc_RuntimeError).attr("__doc__") =
      "An error at run time: in the device, its memory, the ring, or the store.";
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const BadInput& bad) {
      PyErr_SetString(PyExc_ValueError, bad.what());
    }
  });

  m.def("cuda_unavailable", &cuda_unavailable);
  m.def("gpus", [] {
    nb::list found;
    for (const GpuInfo& gpu : gpus()) {
      nb::dict one;
      one["index"] = gpu.index;
      one["name"] = gpu.name;
      one["memory_bytes"] = gpu.memory_bytes;
      one["processors"] = gpu.processors;
      one["capability"] = gpu.capability;
      found.append(one);
    }
    return found;
  });
  nb::class_<MailboxHandle>(m, "Mailbox")
      .def(nb::init<bool>(), "quiet"_a = false)
      .def("fileno", [](const MailboxHandle& handle) { return handle.mailbox->descriptor(); })
      .def("wait", [](const MailboxHandle& handle, double seconds) {
        const Unlocked unlocked;
        handle.mailbox->wait(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3)));
      });
  nb::class_<CompiledWork>(m, "Compiled")
      .def(
          "__init__",
          [](CompiledWork* made, const nb::bytes& image, std::vector<std::string> names, const nb::bytes& members) {
            std::vector<std::uint64_t> words(members.size() / sizeof(std::uint64_t));
            std::memcpy(words.data(), members.data(), words.size() * sizeof(std::uint64_t));
            new (made) CompiledWork{{image.c_str(), image.size()}, std::move(names), std::move(words)};
          },
          "image"_a, "names"_a, "members"_a);
  // Returns (address, bytes, DLPack device type, device index) of an array or a DLPack capsule.
  m.def(
      "address",
      [](const nb::ndarray<nb::ro, nb::c_contig>& array) {
        return nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.data()), array.nbytes(), array.device_type(),
                              array.device_id());
      },
      nb::arg("array").noconvert());
  m.def("launch", &launch, "work"_a, "device"_a, "index"_a, "messages"_a, "result_bytes"_a);
  bind_dlpack(m);
  bind_storage(m);
  bind_store(m);
  PyType_Slot collected[] = {{Py_tp_traverse, reinterpret_cast<void*>(+[](PyObject* self, visitproc visit, void* arg) {
                                Py_VISIT(Py_TYPE(self));
                                if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<Ring>(self)->function().ptr());
                                return 0;
                              })},
                             {Py_tp_clear, reinterpret_cast<void*>(+[](PyObject* self) {
                                if (nb::inst_ready(self)) nb::inst_ptr<Ring>(self)->drop();
                                return 0;
                              })},
                             {0, nullptr}};
  nb::class_<Ring>(m, "Ring", nb::type_slots(collected))
      .def(nb::init<const nb::object&, const std::string&, unsigned, std::size_t, std::size_t, unsigned, std::size_t,
                    const std::string&, double, double, bool>(),
           "work"_a, "device"_a, "index"_a, "message_bytes"_a, "result_bytes"_a, "lanes"_a, "capacity"_a, "idle"_a,
           "park_after"_a, "longest_stay"_a, "by_address"_a)
      .def("call", &Ring::call, "payload"_a, "timeout"_a)
      .def("submit", &Ring::submit, "payload"_a, "mailbox"_a, "owner"_a, "timeout"_a)
      .def("take", &Ring::take, "mailbox"_a)
      .def("reserve", &Ring::reserve, "n"_a, "timeout"_a)
      .def("publish", &Ring::publish, "n"_a)
      .def("poll", &Ring::poll, "n"_a, "timeout"_a)
      .def("release", &Ring::release)
      .def("close", &Ring::close, "now"_a, "patience"_a)
      .def("pause", &Ring::pause, "on"_a)
      .def("parked", &Ring::parked)
      .def("stats", &Ring::stats)
      .def("in_flight", &Ring::in_flight)
      .def("stream", &Ring::stream)
      .def("ordered", &Ring::ordered)
      .def_prop_ro("device", &Ring::device)
      .def_prop_ro("device_name", &Ring::device_name)
      .def_prop_ro("closed", &Ring::closed);
}
