#include "experiments/storage/file_set.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "experiments/harness/measure/session.hpp"
#include "kernels/storage/content.hpp"
#include "libraries/storage/files.hpp"

namespace feedrate::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPart = std::size_t{8} << 20;  // bytes written or read by one call
constexpr const char* kPrefix = "feedrate-storage-";
constexpr const char* kLock = "lock";  // a file that the set's process has locked

struct Part {
  unsigned file;
  std::uint64_t offset;
  std::size_t bytes;
};
/// All parts of the files, to be worked on in parallel.
std::vector<Part> parts_of(std::span<const File> files) {
  std::vector<Part> parts;
  for (unsigned f = 0; f < files.size(); ++f) {
    for (std::uint64_t at = 0; at < files[f].bytes; at += kPart) {
      parts.push_back({f, at, static_cast<std::size_t>(std::min<std::uint64_t>(kPart, files[f].bytes - at))});
    }
  }
  return parts;
}

struct statfs statfs_of(const std::string& path) {
  struct statfs found {};
  if (::statfs(path.c_str(), &found) != 0) throw BadInput("--folder", path, std::strerror(errno));
  return found;
}

/// A new folder in `parent` that no other process uses.
fs::path new_folder(const std::string& parent) {
  std::string name = fmt::format("{}/{}XXXXXX", parent, kPrefix);
  if (::mkdtemp(name.data()) == nullptr) {
    throw BadInput("--folder", parent, fmt::format("a writable folder ({})", std::strerror(errno)));
  }
  return name;
}

/// Locks a new file set until this process ends. The lock file is renamed after it has been locked, so that no other
/// process finds it unlocked. On a file system without locks, no process can remove the set of another one.
Descriptor locked(const fs::path& folder) {
  const fs::path fresh = folder / "new";
  Descriptor lock(fresh, O_RDWR | O_CREAT | O_EXCL);
  ::flock(lock.get(), LOCK_EX);
  fs::rename(fresh, folder / kLock);
  return lock;
}

/// Removes a locked file set. The lock file is removed last, so that another process can finish an interrupted removal.
void remove_set(const fs::path& folder) {
  std::error_code error, ignored;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    if (each->path().filename() != kLock) fs::remove(each->path(), ignored);
  }
  fs::remove_all(folder, ignored);
}

/// Calls `use(folder)` for each file set in `parent` whose process has ended without removing it.
template <class Use>
void for_abandoned(const std::string& parent, const Use& use) {
  std::error_code error;
  for (fs::directory_iterator each(parent, error), end; !error && each != end; each.increment(error)) {
    const fs::path& folder = each->path();
    if (!folder.filename().string().starts_with(kPrefix)) continue;
    const auto lock = Descriptor::adopt(::open((folder / kLock).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (lock.get() >= 0 && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) use(folder);
  }
}

/// Space that the files of a set occupy.
std::uint64_t occupied(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    struct stat status {};
    if (::lstat(each->path().c_str(), &status) == 0) bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return bytes;
}

}  // namespace

FileSet::FileSet(const Medium& medium, std::uint64_t seed, std::uint64_t version)
    : medium_(medium), seed_(seed), version_(version) {
  if (medium.devices.empty()) for_abandoned(medium.folder, remove_set);
  require_room(medium);
  if (!medium.devices.empty()) {
    for (const std::string& path : medium.devices) {
      files_.push_back({path, medium.bytes});
      if (!medium.own) held_.emplace_back(path, O_RDWR | O_EXCL);
    }
    if (!medium.own) create();
    return;
  }
  folder_ = new_folder(medium.folder);
  for (unsigned f = 0; f < medium.files; ++f) files_.push_back({folder_ / fmt::format("{}.bin", f), medium.bytes});
  try {
    lock_ = locked(folder_);
    create();
  } catch (...) {
    remove_set(folder_);
    throw;
  }
}

void FileSet::create() {
  const int flags = O_RDWR | (folder_.empty() ? 0 : O_CREAT | O_EXCL);
  std::vector<Descriptor> open;
  for (const File& file : files_) open.emplace_back(file.path, flags);
  const std::vector<Part> parts = parts_of(files_);
  in_parallel(parts.size(), [&](std::size_t i) {
    if (interrupted()) throw Failure("interrupted while the files were written");
    const Part& part = parts[i];
    std::vector<std::uint64_t> words((part.bytes + 7) / 8);
    auto* const data = reinterpret_cast<std::byte*>(words.data());
    fill_content(data, part.bytes, key(part.file, version_), part.offset);
    const Request request{.offset = part.offset, .bytes = part.bytes};
    const Completion done = move_block(Operation::write, open[part.file].get(), data, request);
    if (done.error != 0 || done.bytes != part.bytes) {
      throw Failure(fmt::format("cannot write {}: {}", files_[part.file].path, std::strerror(done.error)));
    }
  });
  sync();
  for (const File& file : files_) stamps_.push_back(stamp_of(file.path));
}

FileSet::Stamp FileSet::stamp_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino, static_cast<std::uint64_t>(found.st_size)};
}

std::string FileSet::what_changed() const {
  for (std::size_t i = 0; i < stamps_.size(); ++i) {
    const Stamp now = stamp_of(files_[i].path);
    if (now == stamps_[i]) continue;
    const std::string& path = files_[i].path;
    if (now == Stamp{}) return fmt::format("{} was removed while it was in use", path);
    if (now.inode != stamps_[i].inode || now.device != stamps_[i].device) {
      return fmt::format("{} was replaced by another file while it was in use", path);
    }
    return fmt::format("the size of {} changed from {} to {} bytes while it was in use", path, stamps_[i].bytes,
                       now.bytes);
  }
  return "";
}

namespace {

/// `numbers`: those of the devices so far.
void require_device(const std::string& path, std::uint64_t bytes, std::set<dev_t>& numbers) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    throw BadInput("--target", path, fmt::format("a block device ({})", std::strerror(errno)));
  }
  if (!S_ISBLK(found.st_mode)) throw BadInput("--target", path, "a block device");
  if (!numbers.insert(found.st_rdev).second) throw BadInput("--target", path, "each block device once");
  const int device = ::open(path.c_str(), O_RDWR | O_EXCL | O_CLOEXEC);
  if (device < 0) {
    throw BadInput("--target", path,
                   fmt::format("a writable block device that is not in use ({})", std::strerror(errno)));
  }
  int read_only = 0;
  ::ioctl(device, BLKROGET, &read_only);
  const off_t end = ::lseek(device, 0, SEEK_END);
  ::close(device);
  if (read_only != 0) throw BadInput("--target", path, "a block device that is not read-only");
  if (end < 0 || static_cast<std::uint64_t>(end) < bytes) {
    throw BadInput("--target", path, fmt::format("a device with at least {} bytes; it has {}", bytes, end));
  }
}

}  // namespace

void FileSet::require_room(const Medium& medium) {
  if (!medium.devices.empty()) {
    if (medium.own) return;  // the engine checks its devices
    std::set<dev_t> numbers;
    for (const std::string& path : medium.devices) require_device(path, medium.bytes, numbers);
    return;
  }
  const std::string& folder = medium.folder;
  const std::uint64_t bytes = medium.files * medium.bytes;
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw BadInput("--folder", folder, fmt::format("a writable folder ({})", std::strerror(errno)));
  }
  const struct statfs space = statfs_of(folder);
  std::uint64_t room = std::uint64_t{space.f_bavail} * static_cast<std::uint64_t>(space.f_bsize);
  // A run removes abandoned file sets first; a dry run changes nothing.
  for_abandoned(folder, [&](const fs::path& set) { room += occupied(set); });
  if (room < bytes) {
    constexpr double kGiB = std::uint64_t{1} << 30;
    throw BadInput("--folder", folder,
                   fmt::format("a folder with at least {} bytes of free space ({:.1f} GiB); it has {} ({:.1f} GiB)",
                               bytes, static_cast<double>(bytes) / kGiB, room, static_cast<double>(room) / kGiB));
  }
}

FileSet::~FileSet() {
  if (!folder_.empty()) remove_set(folder_);
}

std::uint64_t FileSet::key(unsigned file, std::uint64_t version) const { return content_key(seed_, file, version); }

void FileSet::sync() const {
  if (medium_.own) return;
  for (const File& file : files_) {
    const Descriptor open(file.path, O_RDONLY);
    if (::fsync(open.get()) != 0) throw Failure(fmt::format("fsync of {}: {}", file.path, std::strerror(errno)));
  }
}

void FileSet::make(Residency residency) const {
  if (medium_.own) return;
  if (residency == Residency::cold) {
    sync();  // dirty pages would stay
    for (const File& file : files_) {
      const Descriptor open(file.path, O_RDONLY);
      ::posix_fadvise(open.get(), 0, 0, POSIX_FADV_DONTNEED);
    }
    return;
  }
  std::vector<Descriptor> open;
  for (const File& file : files_) open.emplace_back(file.path, O_RDONLY);
  const std::vector<Part> parts = parts_of(files_);
  in_parallel(parts.size(), [&](std::size_t i) {
    if (interrupted()) return;
    std::vector<std::byte> data(parts[i].bytes);
    static_cast<void>(move_block(Operation::read, open[parts[i].file].get(), data.data(),
                                 {.offset = parts[i].offset, .bytes = parts[i].bytes}));
  });
}

double FileSet::resident_share() const {
  if (medium_.own) return 0;
  std::size_t resident = 0, pages = 0;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (const File& file : files_) {
    const Descriptor open(file.path, O_RDONLY);
    void* const data = ::mmap(nullptr, file.bytes, PROT_READ, MAP_SHARED, open.get(), 0);
    if (data == MAP_FAILED) throw Failure(fmt::format("cannot map {}: {}", file.path, std::strerror(errno)));
    std::vector<unsigned char> states((file.bytes + page - 1) / page);
    const int failed = ::mincore(data, file.bytes, states.data());
    ::munmap(data, file.bytes);
    if (failed != 0) throw Failure(fmt::format("mincore of {}: {}", file.path, std::strerror(errno)));
    pages += states.size();
    resident += static_cast<std::size_t>(std::ranges::count_if(states, [](unsigned char s) { return (s & 1) != 0; }));
  }
  return static_cast<double>(resident) / static_cast<double>(pages);
}

std::string FileSet::file_system() const {
  if (folder_.empty()) return "none";
  const auto type = static_cast<std::uint64_t>(statfs_of(folder_).f_type);
  switch (type) {
    case EXT4_SUPER_MAGIC:
      return "ext4";
    case TMPFS_MAGIC:
      return "tmpfs";
    case OVERLAYFS_SUPER_MAGIC:
      return "overlayfs";
    case XFS_SUPER_MAGIC:
      return "xfs";
    case BTRFS_SUPER_MAGIC:
      return "btrfs";
    default:
      return fmt::format("{:#x}", type);
  }
}

std::string FileSet::block_device() const {
  struct stat found {};
  if (medium_.own || ::stat(files_.front().path.c_str(), &found) != 0) return "";
  const dev_t device = S_ISBLK(found.st_mode) ? found.st_rdev : found.st_dev;
  return fmt::format("{}:{}", major(device), minor(device));
}

}  // namespace feedrate::storage
