// StorageSource and StoragePending, the classes of the storage library. feedrate/storage.py wraps them in the public
// API.

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <feedrate/storage.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interpreter.hpp"
#include "parts.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedrate::python {
namespace {

using storage::Kind;
using storage::Pending;
using storage::Record;
using storage::Source;
using storage::StorageError;

using Words = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// An object of the process that made it. After a fork its threads exist only in the parent, so the child must neither
/// use nor destroy it.
template <class T>
class Owned {
 public:
  explicit Owned(T made) : made_(std::make_unique<T>(std::move(made))) {}
  ~Owned() {
    if (!of_this_process()) {
      static_cast<void>(made_.release());
      return;
    }
    const Unlocked unlocked;  // the end of a source waits for its requests
    made_.reset();
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  T& get() const {
    if (!of_this_process()) throw Failure("the source was opened in another process; open it again after a fork");
    return *made_;
  }

  bool of_this_process() const { return made_after_ == forks.load(); }

 private:
  std::unique_ptr<T> made_;
  unsigned made_after_ = forks.load();
};
using HeldSource = Owned<Source>;

/// A request, and the object whose memory it uses. The memory must not be freed before the end of the request, so the
/// destructor waits for the end and ignores signals.
class HeldPending {
 public:
  HeldPending(Pending pending, nb::object memory) : pending_(std::move(pending)), memory_(std::move(memory)) {}
  ~HeldPending() {
    if (!pending_.of_this_process()) return;
    const Unlocked unlocked;
    try {
      pending_.get().wait();
    } catch (const std::exception&) {  // the caller did not ask
    }
  }
  HeldPending(const HeldPending&) = delete;
  HeldPending& operator=(const HeldPending&) = delete;
  const Pending& get() const { return pending_.get(); }

 private:
  Owned<Pending> pending_;
  nb::object memory_;
};

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

storage::Order order_of(std::optional<std::uintptr_t> stream, bool holds) {
  if (!stream) return {};
  return holds ? storage::Order::in(at(*stream)) : storage::Order::after(at(*stream));
}

/// Starts a request without the interpreter lock: a batch may have many records to sort. `memory` owns its place.
template <class Start>
std::unique_ptr<HeldPending> started(const nb::object& memory, const Start& start) {
  std::optional<Pending> pending;
  {
    const Unlocked unlocked;
    pending.emplace(start());
  }
  return std::make_unique<HeldPending>(std::move(*pending), memory);
}

std::unique_ptr<HeldPending> read(const HeldSource& held, unsigned kind, std::uint64_t first, std::uint64_t count,
                                  std::uintptr_t place, std::optional<std::uintptr_t> stream, bool holds,
                                  const nb::object& memory) {
  Source& source = held.get();
  return started(memory, [&] { return source.read_async(kind, first, count, at(place), order_of(stream, holds)); });
}

std::unique_ptr<HeldPending> read_bytes(const HeldSource& held, std::uint64_t start, std::uint64_t bytes,
                                        std::uintptr_t place, std::optional<std::uintptr_t> stream, bool holds,
                                        const nb::object& memory) {
  Source& source = held.get();
  return started(memory, [&] { return source.read_bytes_async(start, bytes, at(place), order_of(stream, holds)); });
}

std::unique_ptr<HeldPending> write(const HeldSource& held, unsigned kind, std::uint64_t first, std::uint64_t count,
                                   std::uintptr_t place, std::optional<std::uintptr_t> stream, bool holds,
                                   const nb::object& memory) {
  Source& source = held.get();
  return started(memory, [&] { return source.write_async(kind, first, count, at(place), order_of(stream, holds)); });
}

std::unique_ptr<HeldPending> write_bytes(const HeldSource& held, std::uint64_t start, std::uint64_t bytes,
                                         std::uintptr_t place, std::optional<std::uintptr_t> stream, bool holds,
                                         const nb::object& memory) {
  Source& source = held.get();
  return started(memory, [&] { return source.write_bytes_async(start, bytes, at(place), order_of(stream, holds)); });
}

std::unique_ptr<HeldPending> read_batch(const HeldSource& held, const Words& kinds, const Words& indices,
                                        const Words& places, std::optional<std::uintptr_t> stream, bool holds,
                                        const nb::object& memory) {
  Source& source = held.get();
  return started(memory, [&] {
    std::vector<Record> records(indices.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
      records[i] = {static_cast<unsigned>(kinds.data()[i]), indices.data()[i], at(places.data()[i])};
    }
    return source.read_batch_async(records, order_of(stream, holds));
  });
}

/// The sizes of records.
std::vector<std::uint64_t> sizes(const HeldSource& held, const Words& kinds, const Words& indices) {
  Source& source = held.get();
  const Unlocked unlocked;
  std::vector<std::uint64_t> found(indices.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i] = source.bytes_of(static_cast<unsigned>(kinds.data()[i]), indices.data()[i]);
  }
  return found;
}

nb::dict totals(const HeldSource& held) {
  const storage::Statistics found = held.get().statistics();
  nb::dict made;
  made["records"] = found.records;
  made["record_bytes"] = found.record_bytes;
  made["requests"] = found.requests;
  made["request_bytes"] = found.request_bytes;
  made["errors"] = found.errors;
  return made;
}

}  // namespace

void bind_storage(nb::module_& m) {
  // This translator is tried before the one for Failure, which is the base class of StorageError.
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const StorageError& error) {
      const nb::object kind = nb::module_::import_("feedrate.errors").attr("StorageError");
      PyErr_SetObject(kind.ptr(), kind(error.what(), error.error()).ptr());
    }
  });
  nb::class_<HeldPending>(m, "StoragePending")
      .def("ready", [](const HeldPending& held) { return held.get().ready(); })
      .def(
          "wait_for",
          [](const HeldPending& held, double timeout) {
            const Pending& pending = held.get();
            return wait_in_slices(timeout, [&](auto slice) { return pending.wait_for(slice); });
          },
          "timeout"_a);
  nb::class_<HeldSource>(m, "StorageSource")
      .def(
          "__init__",
          [](HeldSource* made, std::vector<std::string> paths, const std::string& device, unsigned gpu,
             const std::string& engine, bool direct, bool writable, std::size_t block, unsigned depth,
             std::size_t gap) {
            const Unlocked unlocked;
            new (made) HeldSource(Source(std::move(paths), {device, gpu, engine, direct, writable, block, depth, gap}));
          },
          "paths"_a, "device"_a, "gpu"_a, "engine"_a, "direct"_a, "writable"_a, "block"_a, "depth"_a, "gap"_a)
      .def_prop_ro("bytes", [](const HeldSource& held) { return held.get().bytes(); })
      .def_prop_ro("engine", [](const HeldSource& held) { return held.get().engine(); })
      .def(
          "begin_of", [](const HeldSource& held, unsigned file) { return held.get().begin_of(file); }, "file"_a)
      .def(
          "add_kind",
          [](const HeldSource& held, const std::string& name, std::uint64_t start, std::optional<std::uint64_t> bytes,
             std::uint64_t record_bytes, const Words& offsets) {
            return held.get().add_kind({name,
                                        start,
                                        bytes.value_or(Kind::kToTheEnd),
                                        record_bytes,
                                        {offsets.data(), offsets.data() + offsets.size()}});
          },
          "name"_a, "start"_a, "bytes"_a.none(), "record_bytes"_a, "offsets"_a)
      .def(
          "records", [](const HeldSource& held, unsigned kind) { return held.get().records(kind); }, "kind"_a)
      .def(
          "bytes_of",
          [](const HeldSource& held, unsigned kind, std::uint64_t first, std::uint64_t count) {
            return held.get().bytes_of(kind, first, count);
          },
          "kind"_a, "first"_a, "count"_a)
      .def("read", &read, "kind"_a, "first"_a, "count"_a, "place"_a, "stream"_a.none(), "holds"_a, "memory"_a.none())
      .def("read_bytes", &read_bytes, "start"_a, "bytes"_a, "place"_a, "stream"_a.none(), "holds"_a, "memory"_a.none())
      .def("read_batch", &read_batch, "kinds"_a, "indices"_a, "places"_a, "stream"_a.none(), "holds"_a,
           "memory"_a.none())
      .def("write", &write, "kind"_a, "first"_a, "count"_a, "place"_a, "stream"_a.none(), "holds"_a, "memory"_a.none())
      .def("write_bytes", &write_bytes, "start"_a, "bytes"_a, "place"_a, "stream"_a.none(), "holds"_a,
           "memory"_a.none())
      .def("sizes", &sizes, "kinds"_a, "indices"_a)
      .def("sync",
           [](const HeldSource& held) {
             Source& source = held.get();
             const Unlocked unlocked;
             source.sync();
           })
      .def("statistics", &totals);
}

}  // namespace feedrate::python
