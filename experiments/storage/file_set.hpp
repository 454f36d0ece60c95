#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "variants/storage/engine.hpp"

namespace feedrate::storage {

/// Which pages of a file the page cache holds before a cell.
enum class Residency { warm, cold };

/// Files with known contents, written and synced on construction and removed on destruction.
class FileSet {
 public:
  /// Throws BadInput like require_room(), and Failure if writing fails.
  FileSet(const std::string& folder, unsigned files, std::uint64_t bytes, std::uint64_t seed, std::uint64_t version);
  ~FileSet();
  /// Throws BadInput naming `--folder` if files cannot be created there, or if it has less space than this.
  static void require_room(const std::string& folder, std::uint64_t bytes);
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  std::span<const File> files() const { return files_; }
  std::uint64_t bytes() const { return files_.size() * files_.front().bytes; }
  std::uint64_t key(unsigned file, std::uint64_t version) const;
  std::uint64_t version() const { return version_; }

  /// Reads all pages into the page cache, or drops them from it.
  void make(Residency) const;
  /// Share of the files' pages that the page cache holds, by mincore().
  double resident_share() const;
  /// Writes the files' data to the drive.
  void sync() const;
  /// The name of the file system's type, as in statfs(2): "ext4", "tmpfs" or its magic number.
  std::string file_system() const;

 private:
  std::filesystem::path folder_;
  std::vector<File> files_;
  std::uint64_t seed_, version_;
};

}  // namespace feedrate::storage
