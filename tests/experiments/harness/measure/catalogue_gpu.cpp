// Listing the catalogue uses no GPU memory, and a new context loads all kernels at once.
#include "experiments/harness/measure/catalogue.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "common/device/device.hpp"

namespace feedrate {
namespace {

template <class Function>
Function* driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

/// Whether this process has a context on the first GPU.
bool has_context() {
  const auto state = driver<int(int, unsigned*, int*)>("cuDevicePrimaryCtxGetState");
  unsigned flags = 0;
  int active = 0;
  EXPECT_TRUE(state != nullptr && state(0, &flags, &active) == 0);
  return active != 0;
}

TEST(CatalogueOnGpu, CatalogueCreatesNoContext) {
  if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  if (has_context()) GTEST_SKIP() << "an earlier test in this process created a context";
  const Json all = catalogue();
  EXPECT_FALSE(has_context());
  EXPECT_GT(all["limits"].size(), 40u);
  const auto device = open_device("cuda");
  EXPECT_TRUE(has_context()) << "no context was detected, so the test proves nothing";
}

TEST(OpenDeviceOnGpu, EveryKernelIsLoadedWithTheContext) {
  if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  const auto device = open_device("cuda");
  const auto loading = driver<int(int*)>("cuModuleGetLoadingMode");
  ASSERT_NE(loading, nullptr);
  int mode = 0;
  ASSERT_EQ(loading(&mode), 0);
  EXPECT_EQ(mode, 1) << "CU_MODULE_EAGER_LOADING: a kernel that is loaded later would wait for resident kernels";
}

}  // namespace
}  // namespace feedrate
