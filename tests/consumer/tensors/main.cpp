// with_static FEEDRATE: uses feedrate/tensors.hpp. It starts a store and creates a tensor, whose elements a child
// process adds up.
#include <feedrate/tensors.hpp>

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using feedrate::tensors::Dtype;
using feedrate::tensors::Store;
using feedrate::tensors::Tensor;

namespace {

void expect(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}

std::span<std::uint32_t> words_of(const Tensor& tensor) {
  return {static_cast<std::uint32_t*>(tensor.data()), tensor.bytes() / sizeof(std::uint32_t)};
}

/// A child process that is killed when this process dies.
class Child {
 public:
  template <class Body>
  explicit Child(Body body) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(body());
  }
  ~Child() { end(SIGKILL); }
  int wait() { return end(0); }

 private:
  int end(int signal) {
    if (pid_ <= 0) return -1;
    int status = 0;
    if (signal != 0) kill(pid_, signal);
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return status;
  }
  pid_t pid_;
};

/// A temporary folder that is removed with its contents.
struct Folder {
  std::string path = std::filesystem::temp_directory_path() / "feedrate_XXXXXX";
  Folder() { expect(mkdtemp(path.data()) != nullptr, "mkdtemp"); }
  ~Folder() { std::filesystem::remove_all(path); }
};

Store connected(const std::string& socket) {
  for (int tries = 0; tries < 200; ++tries) {
    try {
      return Store(socket);
    } catch (const feedrate::tensors::Unreachable&) {
      std::this_thread::sleep_for(50ms);
    }
  }
  throw std::runtime_error("the store does not start");
}

int add_up(const std::string& socket, std::uint32_t words) try {
  Store store(socket);
  Tensor numbers = store.wait("numbers", 10s);
  expect(numbers.wait_for(1, 10s), "no version was published");
  const auto all = words_of(numbers);
  expect(std::accumulate(all.begin(), all.end(), 0u) == words * (words - 1) / 2, "wrong sum");
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "the child: %s\n", e.what());
  return 1;
}

}  // namespace

int main(int count, char** words) try {
  expect(count == 2, "usage: with_static FEEDRATE");
  const Folder folder;
  const std::string socket = folder.path + "/store.sock";
  Child daemon([&] {
    execl(words[1], "feedrate", "store", "serve", "--socket", socket.c_str(), "--device", "cpu", "--memory", "64Mi",
          nullptr);
    return 127;
  });
  Store store = connected(socket);
  constexpr std::uint32_t kWords = 1000;
  Child reader([&] { return add_up(socket, kWords); });
  Tensor numbers = store.create("numbers", {Dtype::u32, {kWords}});
  const auto all = words_of(numbers);
  std::iota(all.begin(), all.end(), 0u);
  numbers.publish();
  expect(reader.wait() == 0, "the child failed");
  try {
    store.get("nothing");
    throw std::runtime_error("found a tensor that does not exist");
  } catch (const feedrate::tensors::NotFound& e) {
    expect(std::string(e.what()).find("nothing") != std::string::npos, "the error does not name the tensor");
  }
  std::printf("%zu tensor, read by another process\n", store.list().size());
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
