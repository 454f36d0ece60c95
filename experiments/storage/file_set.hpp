#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "libraries/storage/descriptor.hpp"
#include "variants/storage/engine.hpp"

namespace feedrate::storage {

/// Which pages of a file the page cache holds before a cell.
enum class Residency { warm, cold };

/// Where blocks are stored.
struct Medium {
  std::string folder = {};                ///< in which files are created
  unsigned files = 1;                     ///< number of files or devices
  std::uint64_t bytes = 0;                ///< per file or device
  std::vector<std::string> devices = {};  ///< block devices to use instead of files
  bool own = false;                       ///< only the engine can access the devices, and writes their contents
};

/// Files with known contents, written and synced on construction and removed on destruction; or block devices. The
/// files of a process that was killed are removed by the next process that uses the folder.
class FileSet {
 public:
  /// First removes the folder's file sets whose processes have ended. Throws BadInput like require_room(), and Failure
  /// if writing fails.
  FileSet(const Medium&, std::uint64_t seed, std::uint64_t version);
  ~FileSet();
  /// Throws BadInput naming `--folder` if the files cannot be created there or do not fit, with the space of file sets
  /// whose processes have ended, and naming `--target` if a device cannot be used. Changes nothing.
  static void require_room(const Medium&);
  /// The number of the file system that holds a folder; 0 if the folder does not exist.
  static std::uint64_t file_system_of(const std::string& folder) { return stamp_of(folder).device; }
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
  /// "major:minor" of the block device that holds the first file, as in /sys/dev/block.
  std::string block_device() const;
  /// Whether a file was replaced or truncated, or changed by others, since it was written; empty if not.
  std::string what_changed() const;

 private:
  /// Identity of a file, and the time of its last change.
  struct Stamp {
    std::uint64_t device = 0, inode = 0, bytes = 0;
    bool operator==(const Stamp&) const = default;
  };
  static Stamp stamp_of(const std::string& path);
  void create();

  Medium medium_;
  std::vector<Descriptor> held_;  // block devices: no other program can mount them, and their cache is kept
  std::filesystem::path folder_;  // empty for block devices
  Descriptor lock_;               // of the folder
  std::vector<File> files_;
  std::vector<Stamp> stamps_;  // indexed like files_
  std::uint64_t seed_, version_;
};

}  // namespace feedrate::storage
