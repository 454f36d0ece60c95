// Store and StoreTensor, the classes of the tensor store. feedrate/tensors.py wraps them in the public API.

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <feedrate/tensors.hpp>

#include "interpreter.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedrate::python {
namespace {

using namespace tensors;
using namespace std::chrono_literals;

using Lengths = std::vector<std::int64_t>;
constexpr nb::call_guard<Unlocked> kUnlocked;  // a binding that needs no interpreter lock

constexpr auto kLongSlice = 200ms;  // interval if each check is a request to the store

template <class Body>
auto without_lock(const Body& body) {
  const Unlocked unlocked;
  return body();
}

/// DLPack's type for a dtype (dlpack.h, version 1.1).
nb::dlpack::dtype dlpack_type(Dtype dtype) {
  enum Code : std::uint8_t {
    integer = 0,
    unsigned_integer = 1,
    real = 2,
    bfloat = 4,
    complex = 5,
    boolean = 6,
    e4m3fn = 10,
    e5m2 = 12
  };
  const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  const auto with = [bits](Code code) { return nb::dlpack::dtype{code, bits, 1}; };
  switch (dtype) {
    case Dtype::f16:
    case Dtype::f32:
    case Dtype::f64:
      return with(real);
    case Dtype::bf16:
      return with(bfloat);
    case Dtype::i8:
    case Dtype::i16:
    case Dtype::i32:
    case Dtype::i64:
      return with(integer);
    case Dtype::u8:
    case Dtype::u16:
    case Dtype::u32:
    case Dtype::u64:
      return with(unsigned_integer);
    case Dtype::boolean:
      return with(boolean);
    case Dtype::e4m3:
      return with(e4m3fn);
    case Dtype::e5m2:
      return with(e5m2);
    case Dtype::c64:
    case Dtype::c128:
      break;
  }
  return with(complex);
}

/// Returns a tensor's memory as a NumPy array or as a DLPack capsule, which holds a lease until it is destroyed.
template <class... Framework>
nb::ndarray<Framework...> array_of(const Tensor& tensor) {
  const Layout& layout = tensor.layout();
  const std::vector<std::size_t> shape(layout.shape.begin(), layout.shape.end());
  nb::capsule lease(new Tensor(tensor), [](void* held) noexcept {
    const Unlocked unlocked;  // releasing the last lease may wait for the GPU
    delete static_cast<Tensor*>(held);
  });
  return nb::ndarray<Framework...>(tensor.data(), shape.size(), shape.data(), lease,
                                   layout.strides.empty() ? nullptr : layout.strides.data(), dlpack_type(layout.dtype),
                                   tensor.cuda_index() < 0 ? nb::device::cpu::value : nb::device::cuda::value,
                                   std::max(0, tensor.cuda_index()));
}

nb::dict dict_of(const Description& about) {
  nb::dict made;
  made["name"] = about.name;
  made["dtype"] = std::string(name_of(about.layout.dtype));
  made["shape"] = nb::tuple(nb::cast(about.layout.shape));
  made["bytes"] = about.bytes;
  made["generation"] = about.generation;
  made["leases"] = about.leases;
  made["pinned"] = about.pinned;
  made["sealed"] = about.sealed;
  made["created"] = 1e-3 * static_cast<double>(about.created_ms);
  made["expires"] = about.expires_ms == 0 ? nb::none() : nb::cast(1e-3 * static_cast<double>(about.expires_ms));
  return made;
}

}  // namespace

void bind_store(nb::module_& m) {
  // This translator is tried before the one for Failure, which is the base class of StoreError.
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const StoreError& error) {
      const nb::object kind = nb::module_::import_("feedrate.errors").attr("of_store")(error.code);
      PyErr_SetString(kind.ptr(), error.what());
    }
  });
  nb::class_<Tensor>(m, "StoreTensor")
      .def_prop_ro("name", &Tensor::name)
      .def_prop_ro("generation", &Tensor::generation)
      .def_prop_ro("dtype", [](const Tensor& tensor) { return std::string(name_of(tensor.layout().dtype)); })
      .def_prop_ro("shape", [](const Tensor& tensor) { return tensor.layout().shape; })
      .def_prop_ro("strides", [](const Tensor& tensor) { return tensor.layout().strides; })
      .def_prop_ro("bytes", &Tensor::bytes)
      .def_prop_ro("deleted", &Tensor::deleted)
      .def_prop_ro("sealed", &Tensor::sealed)
      .def_prop_ro("version", &Tensor::version)
      .def_prop_ro("cuda_index", &Tensor::cuda_index)
      .def_prop_ro("address", [](const Tensor& tensor) { return reinterpret_cast<std::uintptr_t>(tensor.data()); })
      .def(
          "write",
          [](const Tensor& tensor, const nb::ndarray<nb::ro, nb::numpy, nb::c_contig>& from) {
            tensor.write({static_cast<const std::byte*>(from.data()), from.nbytes()});
          },
          "source"_a, kUnlocked)
      .def("publish", &Tensor::publish)
      .def("commit", &Tensor::commit, kUnlocked)
      .def(
          "publish_on",
          [](Tensor& tensor, std::uintptr_t stream) { return tensor.publish_on(reinterpret_cast<void*>(stream)); },
          "stream"_a)
      .def(
          "wait_on",
          [](const Tensor& tensor, std::uintptr_t stream, std::uint64_t version) {
            tensor.wait_on(reinterpret_cast<void*>(stream), version);
          },
          "stream"_a, "version"_a)
      .def(
          "wait_for",
          [](const Tensor& tensor, std::uint64_t version, double timeout) {
            return wait_in_slices(timeout, [&](auto slice) { return tensor.wait_for(version, slice); });
          },
          "version"_a, "timeout"_a)
      .def("numpy", &array_of<nb::numpy>)
      .def("dlpack", &array_of<>)
      .def("begin_half",
           [](Tensor& tensor) {
             tensor.begin_half();
             return (tensor.version() + 1) % 2;
           })
      .def(
          "read_half",
          [](const Tensor& tensor, const nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>, nb::c_contig>& to) {
            return tensor.read_half(std::as_writable_bytes(std::span(to.data(), to.size())));
          },
          "to"_a, kUnlocked);
  nb::class_<Store>(m, "Store")
      .def(
          "__init__",
          [](Store* made, const std::string& socket, double patience) {
            new (made) Store(socket, {std::chrono::ceil<std::chrono::milliseconds>(Seconds(patience))});
          },
          "socket"_a, "patience"_a, kUnlocked)
      .def(
          "create",
          [](Store& store, const std::string& name, const std::string& dtype, const Lengths& shape,
             const Lengths& strides, bool pin, bool evict, std::optional<double> ttl, bool replace, bool staged) {
            const Layout layout{dtype_of(dtype), shape, strides};
            const CreateOptions options{pin, evict, ttl, replace};
            return staged ? store.stage(name, layout, options) : store.create(name, layout, options);
          },
          "name"_a, "dtype"_a, "shape"_a, "strides"_a, "pin"_a, "evict"_a, "ttl"_a.none(), "replace"_a, "staged"_a,
          kUnlocked)
      .def("get", &Store::get, "name"_a, kUnlocked)
      .def(
          "wait",
          [](Store& store, const std::string& name, double timeout) {
            std::optional<Tensor> found;
            const auto wait_once = [&](auto slice) {
              try {
                found = store.wait(name, slice);
              } catch (const TimedOut&) {
              }
              return found.has_value();
            };
            wait_in_slices(timeout, wait_once, kLongSlice);
            if (!found) throw TimedOut("timed out waiting for tensor '" + name + "'");
            return *found;
          },
          "name"_a, "timeout"_a)
      .def("delete", &Store::remove, "name"_a, "generation"_a, kUnlocked)
      .def("list",
           [](Store& store) {
             nb::list made;
             for (const Description& about : without_lock([&] { return store.list(); })) made.append(dict_of(about));
             return made;
           })
      .def(
          "stat",
          [](Store& store, const std::string& name) { return dict_of(without_lock([&] { return store.stat(name); })); },
          "name"_a)
      .def("pin", &Store::pin, "name"_a, "pinned"_a, kUnlocked)
      .def("seal", &Store::seal, "name"_a, kUnlocked)
      .def("evict", &Store::evict, "bytes"_a, kUnlocked)
      .def("status", &Store::status, kUnlocked);
}

}  // namespace feedrate::python
