#include <cstdlib>
#include <mutex>

#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "kernels/matmul/cpu/cpu_products.hpp"
#include "kernels/matmul/peers/library.hpp"
#include "kernels/tile/cpu/simd.hpp"

/// OpenBLAS, loaded at run time: Debian's libopenblas0, or the one in PyPI's wheels of NumPy and SciPy.
/// FEEDRATE_OPENBLAS names another file.
namespace feedrate::ladder::openblas {
namespace {

enum : int { kRowMajor = 101, kPlain = 111, kTransposed = 112 };  // cblas.h

/// cblas_sgemm with its build's type of integers.
template <class Integer>
using Sgemm = void(int order, int a_turned, int b_turned, Integer m, Integer n, Integer k, float alpha, const float* a,
                   Integer lda, const float* b, Integer ldb, float beta, float* c, Integer ldc);

class Library {
 public:
  /// Throws BadInput if FEEDRATE_OPENBLAS names a file that cannot be used.
  static const Library& instance() {
    static const Library library;
    return library;
  }
  const std::string& missing() const { return missing_; }
  const std::string& file() const { return file_; }
  /// The kind of CPU that its kernels were written for.
  std::string kernels() const { return core_name_ == nullptr ? "unknown" : core_name_(); }
  void multiply(const tile::CpuProduct& product, unsigned threads) const {
    const std::scoped_lock lock(mutex_);  // the number of threads belongs to the process
    set_threads_(static_cast<int>(threads));
    if (sgemm64_ != nullptr) {
      call<std::int64_t>(sgemm64_, product);
    } else {
      call<int>(sgemm_, product);
    }
  }

 private:
  Library() {
    // Older versions do not know newer CPUs, and then use their slowest kernels.
    const tile::Simd simd = tile::simd_here();
    if (simd != tile::Simd::plain) setenv("OPENBLAS_CORETYPE", simd == tile::Simd::avx512 ? "SkylakeX" : "Haswell", 0);
    constexpr const char* kVariable = "FEEDRATE_OPENBLAS";
    const char* const named = std::getenv(kVariable);
    const DynamicLibrary library =
        named != nullptr ? DynamicLibrary{named} : DynamicLibrary{"libopenblas.so.0", "libopenblas64_.so.0"};
    file_ = library.file();
    for (const std::string prefix : {"", "scipy_"}) {
      for (const std::string suffix : {"", "64_"}) {
        if (suffix.empty()) library.find(prefix + "cblas_sgemm", sgemm_);
        if (!suffix.empty()) library.find(prefix + "cblas_sgemm64_", sgemm64_);
        library.find(prefix + "openblas_set_num_threads" + suffix, set_threads_);
        library.find(prefix + "openblas_get_corename" + suffix, core_name_);
        if ((sgemm_ != nullptr || sgemm64_ != nullptr) && set_threads_ != nullptr) return;
      }
    }
    if (named != nullptr) throw BadInput(std::string("$") + kVariable, named, "the shared library of an OpenBLAS");
    missing_ =
        "OpenBLAS is missing: install libopenblas0-pthread, or set FEEDRATE_OPENBLAS to the file of NumPy's wheel "
        "(numpy.libs/libscipy_openblas64_-*.so)";
  }

  template <class Integer>
  static void call(Sgemm<Integer>* sgemm, const tile::CpuProduct& product) {
    const bool a_turned = product.a_k != 1, b_turned = product.b_column != 1;
    sgemm(kRowMajor, a_turned ? kTransposed : kPlain, b_turned ? kTransposed : kPlain, static_cast<Integer>(product.m),
          static_cast<Integer>(product.n), static_cast<Integer>(product.k), product.scale, product.a,
          static_cast<Integer>(a_turned ? product.a_k : product.a_row), product.b,
          static_cast<Integer>(b_turned ? product.b_column : product.b_k), 0, product.c,
          static_cast<Integer>(product.c_row));
  }

  Sgemm<int>* sgemm_ = nullptr;
  Sgemm<std::int64_t>* sgemm64_ = nullptr;
  void (*set_threads_)(int) = nullptr;
  char* (*core_name_)() = nullptr;
  std::string missing_, file_;
  mutable std::mutex mutex_;
};

/// Adds the name of the kernels that OpenBLAS chose.
class Named final : public Matmul {
 public:
  explicit Named(std::unique_ptr<Matmul> product) : product_(std::move(product)) {}
  void queue(Stream& stream, const MatmulData& data) override { product_->queue(stream, data); }
  std::map<std::string, std::string> chosen() const override {
    return {{"kernels", Library::instance().kernels()}, {"file", Library::instance().file()}};
  }

 private:
  std::unique_ptr<Matmul> product_;
};

MatmulRung peer(bool one_core) {
  MatmulRung rung =
      cpu_rung({.one_core = one_core, .changes = one_core ? "OpenBLAS on one core" : "OpenBLAS on all cores"},
               [one_core](const tile::CpuProduct& product) {
                 Library::instance().multiply(product, one_core ? 1 : available_cores());
               });
  rung.make = [make = rung.make](const MatmulShape& shape, Device& device) {
    return std::make_unique<Named>(make(shape, device));
  };
  rung.unavailable = [] { return Library::instance().missing(); };
  rung.why_unsupported = [](const MatmulShape& shape, const DeviceInfo&) {
    if (shape.epilogue != Epilogue::none) return std::string("OpenBLAS has no epilogue");
    return why_no_cpu_product(shape);
  };
  return rung;
}

const MatmulRegistration registered{{"openblas", peer(false)}, {"openblas_one_core", peer(true)}};

}  // namespace
}  // namespace feedrate::ladder::openblas
