#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/device/device.hpp"
#include "experiments/harness/load/offer.hpp"
#include "experiments/storage/file_set.hpp"
#include "experiments/storage/pattern.hpp"
#include "kernels/storage/content_kernel.hpp"
#include "variants/storage/engine.hpp"

namespace feedrate::storage {

/// Parameters of the requests of one thread.
struct BlockShape {
  Operation operation = Operation::read;
  std::size_t block = 0, depth = 1;
  std::size_t shift = 0;      ///< bytes by which every block is shifted
  std::uint64_t version = 0;  ///< version of the contents that are read or written
  bool once = false;          ///< each block is accessed at most once

  std::uint64_t writes = 0;  ///< if read: number of writes that made the contents; 0: all blocks have `version`

  /// Version of the contents of request `number`, of `count` blocks that are accessed in turn. Each pass over the
  /// blocks writes another version, so that a lost write cannot hide behind an earlier one.
  std::uint64_t version_of(std::uint64_t number, std::uint64_t count) const {
    if (operation == Operation::write) return version + (number / count << 32);
    return writes == 0 ? version : version + ((writes - 1 - number) / count << 32);
  }
};

/// The requests of one thread as a load's target. A read block is compared with the file's contents on the device; a
/// block to be written is generated there. While results are being checked, `depth` further requests are in flight.
class BlockLoad final : public Endpoint {
 public:
  BlockLoad(std::unique_ptr<Engine>, Device&, const FileSet&, const Pattern&, const BlockShape&);
  ~BlockLoad() override;
  BlockLoad(const BlockLoad&) = delete;
  BlockLoad& operator=(const BlockLoad&) = delete;

  /// Number of slots: twice the depth, because a block is checked while the next one is under way.
  std::size_t window() const { return 2 * shape_.depth; }
  bool submit(std::size_t slot, std::uint64_t number) override;
  std::size_t poll(std::span<std::size_t> ended) override;
  /// Opens the files again for another pass over all blocks; see Engine::reopen().
  bool reopen() {
    exhausted_ = false;
    return engine_->reopen();
  }
  /// Whether all blocks have been submitted, if each is accessed once.
  bool exhausted() const { return exhausted_; }
  const Engine& engine() const { return *engine_; }
  std::uint64_t requested() const { return requested_; }  ///< bytes of submitted requests
  /// Describes the request that has been in flight for longest, with file and offset; empty if none is.
  std::string oldest() const;

 private:
  /// A group of blocks that one kernel generates or checks.
  struct Group {
    Block* blocks;
    Verdict* verdicts;
    std::unique_ptr<Event> event;
    std::vector<std::size_t> slots;
  };
  Block block_of(std::size_t slot) const;
  void launch(Group&, bool check);
  void finish(const Group&);
  std::string text_of(const Request&) const;
  [[noreturn]] void fail(const Request&, const std::string& why) const;

  const FileSet& files_;
  const Pattern& pattern_;
  BlockShape shape_;
  std::uint64_t blocks_per_file_, requested_ = 0;
  bool exhausted_ = false;
  Buffer device_, lists_;
  std::vector<Request> requests_;        // indexed by slot
  std::vector<std::uint64_t> numbers_;   // indexed by slot; 0: not in flight
  std::vector<std::uint64_t> versions_;  // of the contents, indexed by slot
  std::size_t under_way_ = 0;            // number of submitted requests that have not been reported
  std::vector<Group> spare_;
  std::deque<Group> running_;          // generating or checking, in order
  std::deque<std::size_t> generated_;  // slots ready to be written
  std::deque<std::size_t> ended_;      // slots whose requests have ended
  std::unique_ptr<Stream> stream_;     // this and the engine are destroyed first: they use the memory above
  std::unique_ptr<Engine> engine_;
};

}  // namespace feedrate::storage
