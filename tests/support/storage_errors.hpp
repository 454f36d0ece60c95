#pragma once
#include <fcntl.h>
#include <linux/loop.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <thread>

#include "common/error.hpp"
#include "tests/support/device_around.hpp"

/// Causes of errors for tests of storage.
namespace feedrate::test {

/// A CPU device that calls a function before a certain kernel, and whose memory can be limited like a GPU's.
class MeddlingDevice final : public DeviceAround {
 public:
  struct Plan {
    std::atomic<int> launches{0};  ///< `act` is called before this launch, counted from now; 0: never
    std::function<void()> act = {};
    std::atomic<bool> no_device_memory{false}, no_pinned_memory{false};
  };
  explicit MeddlingDevice(std::shared_ptr<Plan> plan) : plan_(std::move(plan)) {}
  Buffer allocate_device(std::size_t bytes, Fresh fresh) override {
    if (plan_->no_device_memory) throw Failure("cudaMalloc: out of memory");
    return DeviceAround::allocate_device(bytes, fresh);
  }
  Buffer pin(std::byte* data, std::size_t bytes, Access access) override {
    if (plan_->no_pinned_memory) throw Failure("cudaHostRegister: out of memory");
    return DeviceAround::pin(data, bytes, access);
  }
  std::unique_ptr<Stream> stream() override { return std::make_unique<MeddlingStream>(plan_, device_->stream()); }

 private:
  struct MeddlingStream final : StreamAround {
    MeddlingStream(std::shared_ptr<Plan> plan, std::unique_ptr<Stream> stream)
        : StreamAround(std::move(stream)), plan(std::move(plan)) {}
    using StreamAround::launch;
    void launch(const Launchable& launchable) override {
      if (plan->launches.load() != 0 && plan->launches.fetch_sub(1) == 1) plan->act();
      StreamAround::launch(launchable);
    }
    std::shared_ptr<Plan> plan;
  };
  std::shared_ptr<Plan> plan_;
};

/// Sends signals to all other threads of the process, whose handler does nothing and does not restart system calls.
class SignalStorm {
 public:
  SignalStorm() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGUSR2, &action, &before_);
    thread_ = std::jthread([this](const std::stop_token& stop) {
      const pid_t own = static_cast<pid_t>(::syscall(SYS_gettid));
      while (!stop.stop_requested()) {
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
          const pid_t thread = std::stoi(entry.path().filename());
          if (thread != own && ::syscall(SYS_tgkill, ::getpid(), thread, SIGUSR2) == 0) ++sent_;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(300));
      }
    });
  }
  ~SignalStorm() {
    thread_ = {};
    ::sigaction(SIGUSR2, &before_, nullptr);
  }
  SignalStorm(const SignalStorm&) = delete;
  unsigned sent() const { return sent_.load(); }

 private:
  std::atomic<unsigned> sent_{0};
  struct sigaction before_ {};
  std::jthread thread_;
};

/// The process without the rights of root, until destruction.
class Unprivileged {
 public:
  Unprivileged() : was_(::geteuid()) {
    if (was_ == 0 && ::seteuid(65534) != 0) throw std::system_error(errno, std::generic_category(), "seteuid");
  }
  ~Unprivileged() { static_cast<void>(!::seteuid(was_)); }
  Unprivileged(const Unprivileged&) = delete;

 private:
  uid_t was_;
};

/// A soft limit of the process, until destruction.
class LowerLimit {
 public:
  LowerLimit(int resource, rlim_t value) : resource_(resource) {
    ::getrlimit(resource, &before_);
    const rlimit lower{std::min(value, before_.rlim_max), before_.rlim_max};
    ::setrlimit(resource, &lower);
  }
  ~LowerLimit() { ::setrlimit(resource_, &before_); }
  LowerLimit(const LowerLimit&) = delete;

 private:
  int resource_;
  rlimit before_{};
};

/// A block device whose medium is a file (a loop device).
class FileDevice {
 public:
  /// Throws std::system_error if this process may not make one.
  FileDevice(const std::string& file, std::uint64_t bytes)
      : file_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)), bytes_(bytes) {
    require(file_, file.c_str());
    return_medium();
    const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    require(control, "/dev/loop-control");
    for (int tries = 0; tries < 20 && device_ < 0; ++tries) {  // another process may take the same device
      path_ = "/dev/loop" + std::to_string(::ioctl(control, LOOP_CTL_GET_FREE));
      const int device = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
      loop_config config{};
      config.fd = static_cast<unsigned>(file_);
      config.block_size = 4096;
      config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
      if (device >= 0 && ::ioctl(device, LOOP_CONFIGURE, &config) == 0) {
        device_ = device;
      } else if (device >= 0) {
        ::close(device);
      }
    }
    ::close(control);
    require(device_, "a loop device");
  }
  ~FileDevice() {
    ::close(device_);  // the kernel detaches the file when nothing uses the device
    ::close(file_);
  }
  FileDevice(const FileDevice&) = delete;
  const std::string& path() const { return path_; }
  void remove_medium() const { static_cast<void>(!::ftruncate(file_, 0)); }
  void return_medium() const { static_cast<void>(!::ftruncate(file_, static_cast<off_t>(bytes_))); }

 private:
  static void require(int descriptor, const char* what) {
    if (descriptor < 0) throw std::system_error(errno, std::generic_category(), what);
  }
  int file_;
  std::uint64_t bytes_;
  std::string path_;
  int device_ = -1;
};

}  // namespace feedrate::test
