#include "variants/storage/nvme/shared_controller.hpp"

#include <condition_variable>
#include <map>
#include <mutex>

#include "variants/storage/nvme/vfio.hpp"

namespace feedrate::storage::nvme {
namespace {

/// The controllers that this process has open, by address.
struct OpenControllers {
  std::mutex mutex;
  std::condition_variable closed;
  std::map<std::string, std::weak_ptr<Controller>> open;

  static OpenControllers& instance() {
    static OpenControllers controllers;
    return controllers;
  }
  void close(const std::string& address, Controller* controller) {
    delete controller;  // shuts it down, which takes a while
    {
      const std::lock_guard lock(mutex);
      open.erase(address);
    }
    closed.notify_all();
  }
};

}  // namespace

std::shared_ptr<Controller> open_controller(const std::string& address) {
  auto& all = OpenControllers::instance();
  std::unique_lock lock(all.mutex);
  while (true) {
    const auto found = all.open.find(address);
    if (found == all.open.end()) break;
    if (auto controller = found->second.lock()) return controller;
    all.closed.wait(lock);  // another thread is closing it
  }
  auto opened = std::make_unique<Controller>(std::make_unique<VfioPort>(address));
  std::shared_ptr<Controller> shared(opened.release(),
                                     [&all, address](Controller* controller) { all.close(address, controller); });
  all.open[address] = shared;
  return shared;
}

}  // namespace feedrate::storage::nvme
