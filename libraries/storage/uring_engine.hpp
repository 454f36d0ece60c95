#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "libraries/storage/copies.hpp"
#include "libraries/storage/files.hpp"
#include "libraries/storage/slots.hpp"
#include "libraries/storage/uring.hpp"

namespace feedrate::storage {

struct UringOptions {
  std::string wait = "interrupt";  ///< `interrupt`, `sqpoll` or `iopoll`
  std::string punt = "auto";       ///< see punts()
  unsigned streams = 2;            ///< groups of copies that run at once
};

/// Reads and writes by io_uring, with files and staging memory registered once. Completed reads become one group of
/// copies per poll.
class UringEngine final : public Engine {
 public:
  UringEngine(const EngineConfig&, const UringOptions&);
  ~UringEngine() override;
  UringEngine(const UringEngine&) = delete;
  UringEngine& operator=(const UringEngine&) = delete;

  bool submit(const Request&) override;
  void flush() override;
  std::size_t poll(std::span<Completion> ended) override;
  bool reopen() override;
  std::map<std::string, std::string> path() const override;

 private:
  void register_files();
  void queue(std::size_t slot);
  void collect();
  void handle(std::size_t slot, int result);

  Operation operation_;
  UringOptions options_;
  bool punts_;
  OpenFiles files_;
  Staging staging_;
  Slots slots_;
  Copies copies_;
  Uring ring_;
  unsigned unsent_ = 0;  // number of entries not yet submitted
  unsigned queued_ = 0;  // number of entries without a completion
};

}  // namespace feedrate::storage
