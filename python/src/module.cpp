// The extension module feedrate._core: the GPU ring for Python. feedrate/ring.py gives it its public shape.
#include <Python.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>
#include <unistd.h>

#include "calls.hpp"
#include "generated/revision.hpp"
#include "views.hpp"
#include "work.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace std::chrono_literals;

namespace feedrate::python {
namespace {

std::atomic<unsigned> forks{0};  // of this process, seen from the child

std::atomic<bool> ended{false};  // the interpreter: it has closed the rings and is about to go

/// Lets other threads have the interpreter. A thread that would take it back from one that ends would be ended itself,
/// in the middle of our frames, which std::terminate answers. So it sleeps, as Python 3.14 has it.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    while (ended.load() && gettid() != getpid()) pause();
    PyEval_RestoreThread(state_);
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

using Bytes2 = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<2>>;

/// A Python function on batches, for the CPU device: function(messages, results), rows of a header and a payload each.
class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(nb::object function) : function_(std::move(function)) {}
  ~FunctionKernel() override {
    const nb::gil_scoped_acquire gil;
    function_.reset();
  }
  void run_on_cpu(const BatchView& batch) const override {
    const nb::gil_scoped_acquire gil;
    try {
      const Bytes2 in(const_cast<std::byte*>(batch.in), {batch.count, batch.in_stride});
      const Bytes2 out(batch.out, {batch.count, batch.out_stride});
      function_(nb::cast(in, nb::rv_policy::reference), nb::cast(out, nb::rv_policy::reference));
    } catch (nb::python_error& error) {  // `function` answers for the user's errors; this is one of ours
      error.discard_as_unraisable("feedrate: serving a batch");
      for (std::uint32_t i = 0; i < batch.count; ++i) {
        const Header& message = *reinterpret_cast<const Header*>(batch.in + std::size_t{i} * batch.in_stride);
        *reinterpret_cast<Header*>(batch.out + std::size_t{i} * batch.out_stride) = {
            message.id, kFailed | static_cast<std::uint32_t>(Fault::refused), 0};
      }
    }
  }
  void launch_on_cuda(const BatchView&, unsigned, void*) const override { throw Failure("a Python function"); }
  void launch_resident_on_cuda(std::span<const LaneView>, const ResidentShape&, void*) const override {
    throw Failure("a Python function");
  }
  unsigned resident_blocks_that_fit(const ResidentShape&) const override { return 0; }

 private:
  nb::object function_;
};

/// What a ring consists of. Blocks of messages and calls under way keep it.
struct Parts {
  std::unique_ptr<Device> device;
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Calls> calls;
  std::unique_ptr<Views> views;
  unsigned made_after = forks.load();

  bool of_this_process() const { return made_after == forks.load(); }
  ~Parts() {
    if (of_this_process()) return;
    // The threads, and what the driver knows, stayed in the parent.
    static_cast<void>(calls.release());
    static_cast<void>(views.release());
    static_cast<void>(kernel.release());
    static_cast<void>(device.release());
  }
};

/// The bytes of an object with the buffer protocol, while this lives.
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

/// Python's handle on a mailbox, which the messages on their way keep too.
struct Box {
  explicit Box(bool quiet) : mailbox(std::make_shared<Mailbox>(quiet)) {}
  std::shared_ptr<Mailbox> mailbox;
};

constexpr auto kSlice = 20ms;  // after so long a wait looks for Ctrl-C

/// Messages that come alone take the shortest way that they fit: by flags, each looked for by many small teams.
RingConfig for_calls(RingConfig config, bool gpu) {
  config.lanes = std::min(config.lanes, 4u);
  config.notify = Notify::flags;
  for (const unsigned teams : {8u, 2u}) {
    config.pollers = teams;
    config.mirrors = gpu ? teams : 1;
    config.batch = gpu ? 1 : 8;
    if ((gpu || teams == 2) && refuse(config).empty()) return config;
  }
  config.notify = Notify::counter;
  config.pollers = config.mirrors = 1;
  config.batch = 64;
  return config;
}

class Ring {
 public:
  Ring(nb::object work, const std::string& device, unsigned index, std::size_t message_bytes, std::size_t result_bytes,
       unsigned lanes, std::size_t capacity, const std::string& idle, double park_after)
      : message_bytes_(message_bytes), result_bytes_(result_bytes), parts_(std::make_shared<Parts>()) {
    const bool function = function_ = !nb::isinstance<nb::str>(work);
    if (!function && nb::cast<std::string>(work) != "echo") {
      throw BadInput("kernel", nb::cast<std::string>(work), "echo, or a function");
    }
    parts_->kernel = function ? std::make_unique<FunctionKernel>(std::move(work)) : make_echo();
    const Unlocked unlocked;
    parts_->device = open_device(function ? "cpu" : device, index);
    device_ = std::string(parts_->device->kind());
    name_ = parts_->device->info().name;
    const RingIdle how = idle == "spin" ? RingIdle::spin : idle == "backoff" ? RingIdle::backoff : RingIdle::park;
    RingConfig config;
    config.message_bytes = message_bytes;
    config.result_bytes = result_bytes;
    config.lanes = lanes;
    config.capacity = capacity;
    config.idle = how;
    config.park_after = std::chrono::microseconds(static_cast<std::int64_t>(park_after * 1e6));
    config.results = ResultOrder::as_finished;
    parts_->calls = std::make_unique<Calls>(*parts_->device, *parts_->kernel, for_calls(config, device_ == "cuda"));
    RingConfig many = config;
    many.batch = capacity;
    many.block = 512;
    many.results = ResultOrder::in_order;
    parts_->views = std::make_unique<Views>(*parts_->device, *parts_->kernel, many);
  }
  ~Ring() { close(true, 0); }

  /// The result as bytes, or a tuple (fault, status) that ring.py turns into an error.
  nb::object call(nb::handle payload, double timeout) {
    const auto parts = mine();
    Ticket* const ticket = send(*parts, payload, nullptr, nullptr, timeout);
    if (ticket == nullptr) return nb::none();
    return answer(*parts, ticket, timeout);
  }

  /// False when every lane is full until the time is over. `owner` comes back from the mailbox.
  bool submit(nb::handle payload, const Box& box, nb::object owner, double timeout) {
    const auto parts = mine();
    if (send(*parts, payload, box.mailbox, owner.ptr(), timeout) == nullptr) return false;
    owner.release();  // the mailbox's reader gets it back
    return true;
  }

  /// [(owner, payload or None, fault, ending)]: what has come for this mailbox.
  nb::list take(const Box& box) {
    const auto parts = parts_;
    nb::list found;
    if (!parts->of_this_process()) return found;        // its descriptor is the parent's as well
    if (box.mailbox->quiet()) parts->calls->collect();  // gpuqueue's, whose work is no Python function
    for (Ticket* const ticket : box.mailbox->take()) {
      const nb::object owner = nb::steal<nb::object>(static_cast<PyObject*>(ticket->owner));
      nb::object payload = nb::none();
      if (ticket->ending == Ending::ok) payload = nb::bytes(ticket->payload.data(), ticket->payload.size());
      found.append(nb::make_tuple(owner, payload, static_cast<int>(ticket->fault), static_cast<int>(ticket->ending)));
      if (parts->calls) parts->calls->give_back(ticket);
    }
    return found;
  }

  nb::object reserve(std::size_t n, double timeout) {
    return block([](Views& views, std::size_t most) { return views.reserve(most); }, n, timeout);
  }
  nb::object poll(std::size_t n, double timeout) {
    return block([](Views& views, std::size_t most) { return views.poll(most); }, n, timeout);
  }
  void publish(std::size_t n) { mine()->views->publish(n); }
  void release() { mine()->views->release(); }

  void close(bool now, double patience) {
    if (!parts_ || !parts_->of_this_process()) return;
    const auto parts = parts_;
    const Unlocked unlocked;
    const auto how = now ? RingStop::now : RingStop::drain;
    if (!parts->calls || !parts->views) return;
    const auto most = std::chrono::nanoseconds(static_cast<std::int64_t>(patience * 1e9));
    parts->calls->stop(how, most);
    parts->views->stop(how, most);
    closed_ = true;
  }

  void pause(bool on) {
    if (closed_ && !on) return;
    const auto parts = mine();
    const Unlocked unlocked;
    parts->calls->pause(on);
    parts->views->pause(on);
  }
  bool parked() {
    const auto parts = mine();
    const Unlocked unlocked;
    return parts->calls->parked() && parts->views->parked();
  }
  nb::dict stats() {
    const auto parts = mine();
    RingStats alone, many;
    {
      const Unlocked unlocked;
      alone = parts->calls->stats();
      many = parts->views->stats();
    }
    nb::dict told;
    told["sent"] = alone.published + many.published;
    told["answered"] = alone.released + many.released;
    told["parked_lanes"] = alone.parked_lanes + many.parked_lanes;
    told["restarts"] = alone.restarts + many.restarts;
    return told;
  }
  std::uint64_t in_flight() { return mine()->calls->in_flight(); }
  const std::string& device() const { return device_; }
  const std::string& device_name() const { return name_; }
  bool closed() const { return closed_; }

 private:
  std::shared_ptr<Parts> mine() const {
    if (!parts_->of_this_process()) throw Failure("this ring was made before a fork: it stays with its process");
    if (closed_) throw Failure("the ring is closed");
    return parts_;
  }

  /// Calls `attempt` until it gives something, or the time is over. Ctrl-C ends it.
  template <class Attempt>
  auto until(double timeout, Attempt attempt) const -> decltype(attempt()) {
    const auto start = std::chrono::steady_clock::now();
    {
      // A Python function's threads need the interpreter before they let go of what an attempt may wait for.
      const std::unique_ptr<Unlocked> unlocked(function_ ? new Unlocked : nullptr);
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
    return until(timeout, [&] { return parts.calls->try_submit(bytes.bytes(), mailbox, owner); });
  }

  static nb::object answer(Parts& parts, Ticket* ticket, double timeout) {
    const auto start = std::chrono::steady_clock::now();
    while (true) {
      bool came = false;
      {
        const Unlocked unlocked;
        came = parts.calls->wait(*ticket, kSlice);
      }
      if (came) break;
      const bool interrupted = PyErr_CheckSignals() != 0;
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
      if (interrupted || (timeout >= 0 && waited.count() > timeout)) {
        parts.calls->give_back(ticket);
        if (interrupted) throw nb::python_error();
        return nb::none();
      }
    }
    nb::object told;
    if (ticket->ending == Ending::ok) {
      told = nb::bytes(ticket->payload.data(), ticket->payload.size());
    } else {
      told = nb::make_tuple(static_cast<int>(ticket->fault), static_cast<int>(ticket->ending));
    }
    parts.calls->give_back(ticket);
    return told;
  }

  /// An array (messages, stride) of the block's slots, or None when there is none in time.
  template <class Ask>
  nb::object block(Ask ask, std::size_t n, double timeout) {
    const auto parts = mine();
    unsigned looks = 0;
    const std::optional<Block> found = until(timeout, [&] {
      if (++looks % 65536 == 0) parts->views->check();
      return ask(*parts->views, n);
    });
    if (!found) return nb::none();
    // The array keeps the slots' memory, so that one that outlives its block reads no freed memory.
    auto* const kept = new std::shared_ptr<Parts>(parts);
    const nb::capsule owner(kept, [](void* pointer) noexcept {
      const Unlocked unlocked;
      delete static_cast<std::shared_ptr<Parts>*>(pointer);
    });
    return nb::cast(Bytes2(found->base, {found->count, found->stride}, owner), nb::rv_policy::reference);
  }

  std::size_t message_bytes_, result_bytes_;
  std::shared_ptr<Parts> parts_;
  std::string device_, name_;
  std::atomic<bool> closed_{false};
  bool function_ = false;
};

}  // namespace
}  // namespace feedrate::python

NB_MODULE(_core, m) {
  using namespace feedrate;
  using namespace feedrate::python;
  nb::set_leak_warnings(false);  // rings that live until the interpreter ends are no mistake
  pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  m.attr("revision") = FEEDRATE_REVISION;
  m.attr("version") = FEEDRATE_VERSION;

  nb::exception<Failure>(m, "Error", PyExc_RuntimeError).attr("__doc__") =
      "Something broke while running: the device, its memory, the ring.";
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const BadInput& bad) {
      PyErr_SetString(PyExc_ValueError, bad.what());
    }
  });

  m.def("end", [] { ended.store(true); });
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
  nb::class_<Box>(m, "Mailbox")
      .def(nb::init<bool>(), "quiet"_a = false)
      .def("fileno", [](const Box& box) { return box.mailbox->descriptor(); })
      .def("wait", [](const Box& box, double seconds) {
        const Unlocked unlocked;
        box.mailbox->wait(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3)));
      });
  nb::class_<Ring>(m, "Ring")
      .def(nb::init<nb::object, const std::string&, unsigned, std::size_t, std::size_t, unsigned, std::size_t,
                    const std::string&, double>(),
           "work"_a, "device"_a, "index"_a, "message_bytes"_a, "result_bytes"_a, "lanes"_a, "capacity"_a, "idle"_a,
           "park_after"_a)
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
      .def_prop_ro("device", &Ring::device)
      .def_prop_ro("device_name", &Ring::device_name)
      .def_prop_ro("closed", &Ring::closed);
}
