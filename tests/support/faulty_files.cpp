#include "tests/support/faulty_files.hpp"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <vector>

namespace feedrate::test {
namespace {

constexpr std::size_t kLargestWrite = 128 << 10, kBuffer = kLargestWrite + 65536;

struct Node {
  std::uint64_t parent = 0;
  std::string name;
  bool is_folder = false;
  std::uint32_t owner = 0, mode = 0;
  std::vector<char> data = {};
};

/// The process that serves the file system. Node 1 is the root.
class Server {
 public:
  Server(int device, FaultyFiles::Faults& faults) : device_(device), faults_(faults), buffer_(kBuffer) {
    nodes_.resize(2);
    nodes_[1] = {0, "", true, 0, S_IFDIR | 0777};
  }
  [[noreturn]] void serve() {
    while (true) {
      pollfd readable{device_, POLLIN, 0};
      ::poll(&readable, 1, 2);
      if (!faults_.holds_reads) {
        for (const Held& each : held_) read(each.unique, each.in);
        held_.clear();
      }
      if (readable.revents == 0) continue;
      const ssize_t bytes = ::read(device_, buffer_.data(), buffer_.size());
      if (bytes < 0 && errno == ENODEV) ::_exit(0);  // unmounted
      if (bytes >= static_cast<ssize_t>(sizeof(fuse_in_header))) handle();
    }
  }

 private:
  struct Held {
    std::uint64_t unique;
    std::pair<std::uint64_t, fuse_read_in> in;
  };
  const fuse_in_header& header() const { return *reinterpret_cast<const fuse_in_header*>(buffer_.data()); }
  template <class T>
  const T& body() const {
    return *reinterpret_cast<const T*>(buffer_.data() + sizeof(fuse_in_header));
  }
  const char* text(std::size_t after) const { return buffer_.data() + sizeof(fuse_in_header) + after; }

  void answer(std::uint64_t unique, int error, const void* data = nullptr, std::size_t bytes = 0) {
    fuse_out_header out{static_cast<std::uint32_t>(sizeof out + bytes), -error, unique};
    iovec parts[] = {{&out, sizeof out}, {const_cast<void*>(data), bytes}};
    if (::writev(device_, parts, bytes == 0 ? 1 : 2) < 0) return;  // the request was given up
  }
  template <class T>
  void answer(const T& out) {
    answer(header().unique, 0, &out, sizeof out);
  }
  void fail(int error) { answer(header().unique, error); }

  fuse_attr attributes(std::uint64_t id) const {
    const Node& node = nodes_[id];
    fuse_attr found{};
    found.ino = id;
    found.size = node.data.size();
    found.blocks = (node.data.size() + 511) / 512;
    found.mode = node.mode;
    found.nlink = 1;
    found.uid = node.owner;
    found.blksize = 4096;
    return found;
  }
  fuse_entry_out entry(std::uint64_t id) const {
    fuse_entry_out out{};
    out.nodeid = id;
    out.attr = attributes(id);
    return out;
  }
  std::uint64_t find(std::uint64_t parent, const std::string& name) const {
    for (std::uint64_t id = 2; id < nodes_.size(); ++id) {
      if (nodes_[id].parent == parent && nodes_[id].name == name) return id;
    }
    return 0;
  }
  std::uint64_t add(const std::string& name, bool is_folder, std::uint32_t mode) {
    nodes_.push_back({header().nodeid, name, is_folder, header().uid, mode});
    return nodes_.size() - 1;
  }
  bool fails(std::uint64_t offset, std::uint64_t bytes) const {
    return offset < faults_.end && offset + bytes > faults_.begin;
  }

  void read(std::uint64_t unique, const std::pair<std::uint64_t, fuse_read_in>& request) {
    const auto& [id, in] = request;
    const std::vector<char>& data = nodes_[id].data;
    const std::size_t begin = std::min<std::size_t>(in.offset, data.size());
    std::size_t bytes = std::min<std::size_t>(in.size, data.size() - begin);
    int error = fails(in.offset, in.size) ? faults_.read_error.load() : 0;
    if (faults_.interrupts != 0 && ++reads_ % faults_.interrupts == 0) error = EINTR;
    const std::size_t most = faults_.longest_read;
    if (error != 0 || (most != 0 && bytes > most)) ++faults_.injected;
    if (most != 0) bytes = std::min(bytes, most);
    answer(unique, error, data.data() + begin, error == 0 ? bytes : 0);
  }
  void write() {
    const auto& in = body<fuse_write_in>();
    if (const int error = faults_.write_error; error != 0 && fails(in.offset, in.size)) {
      ++faults_.injected;
      return fail(error);
    }
    std::vector<char>& data = nodes_[header().nodeid].data;
    if (data.size() < in.offset + in.size) data.resize(in.offset + in.size);
    std::memcpy(data.data() + in.offset, text(sizeof in), in.size);
    answer(fuse_write_out{in.size, 0});
  }
  void list() {
    const auto& in = body<fuse_read_in>();
    std::vector<char> all;
    for (std::uint64_t id = std::max<std::uint64_t>(2, in.offset + 1); id < nodes_.size(); ++id) {
      const Node& node = nodes_[id];
      if (node.parent != header().nodeid) continue;
      fuse_dirent one{id, id, static_cast<std::uint32_t>(node.name.size()), node.mode >> 12};
      const std::size_t bytes = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + node.name.size());
      if (all.size() + bytes > in.size) break;
      all.resize(all.size() + bytes);
      char* const to = all.data() + all.size() - bytes;
      std::memcpy(to, &one, FUSE_NAME_OFFSET);
      std::memcpy(to + FUSE_NAME_OFFSET, node.name.data(), node.name.size());
    }
    answer(header().unique, 0, all.data(), all.size());
  }
  void handle() {
    const std::uint64_t id = header().nodeid;
    switch (header().opcode) {
      case FUSE_INIT: {
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = FUSE_KERNEL_MINOR_VERSION;
        out.max_readahead = body<fuse_init_in>().max_readahead;
        out.flags = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_INIT_EXT;
        out.flags2 = 1u << 4;  // FUSE_DIRECT_IO_ALLOW_MMAP, which older headers do not have
        out.max_write = kLargestWrite;
        out.time_gran = 1;
        out.max_background = 64;
        out.congestion_threshold = 48;
        return answer(out);
      }
      case FUSE_LOOKUP: {
        const std::uint64_t found = find(id, text(0));
        return found == 0 ? fail(ENOENT) : answer(entry(found));
      }
      case FUSE_SETATTR:
        if ((body<fuse_setattr_in>().valid & FATTR_SIZE) != 0) nodes_[id].data.resize(body<fuse_setattr_in>().size);
        [[fallthrough]];
      case FUSE_GETATTR: {
        fuse_attr_out out{};
        out.attr = attributes(id);
        return answer(out);
      }
      case FUSE_MKDIR:
        return answer(entry(add(text(sizeof(fuse_mkdir_in)), true, S_IFDIR | body<fuse_mkdir_in>().mode)));
      case FUSE_CREATE: {
        struct {
          fuse_entry_out entry;
          fuse_open_out open;
        } out{entry(add(text(sizeof(fuse_create_in)), false, S_IFREG | body<fuse_create_in>().mode)), {}};
        return answer(out);
      }
      case FUSE_RENAME: {
        const char* const from = text(sizeof(fuse_rename_in));
        Node& node = nodes_[find(id, from)];
        node.parent = body<fuse_rename_in>().newdir;
        node.name = from + std::strlen(from) + 1;
        return fail(0);
      }
      case FUSE_UNLINK:
      case FUSE_RMDIR:
        nodes_[find(id, text(0))].parent = 0;
        return fail(0);
      case FUSE_OPEN:
      case FUSE_OPENDIR: {
        fuse_open_out out{};
        out.open_flags = faults_.past_cache ? FOPEN_DIRECT_IO : FOPEN_KEEP_CACHE;
        return answer(out);
      }
      case FUSE_READ:
        if (faults_.holds_reads) {
          ++faults_.injected;
          return held_.push_back({header().unique, {id, body<fuse_read_in>()}});
        }
        return read(header().unique, {id, body<fuse_read_in>()});
      case FUSE_WRITE:
        return write();
      case FUSE_READDIR:
        return list();
      case FUSE_STATFS: {
        fuse_statfs_out out{};
        out.st.blocks = out.st.bfree = out.st.bavail = 1 << 20;
        out.st.bsize = out.st.frsize = 4096;
        out.st.namelen = 255;
        return answer(out);
      }
      case FUSE_FSYNC:
        return fail(faults_.sync_error);
      case FUSE_RELEASE:
      case FUSE_RELEASEDIR:
      case FUSE_FLUSH:
        return fail(0);
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:  // the request stays as it is
        return;
      default:
        return fail(ENOSYS);
    }
  }

  int device_;
  FaultyFiles::Faults& faults_;
  std::vector<char> buffer_;
  std::vector<Node> nodes_;
  std::vector<Held> held_;
  unsigned reads_ = 0;
};

[[noreturn]] void fail_with_errno(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

FaultyFiles::FaultyFiles(std::filesystem::path folder) : folder_(std::move(folder)) {
  const int device = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) fail_with_errno("/dev/fuse");
  const std::string options = "fd=" + std::to_string(device) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("faulty", folder_.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    const int error = errno;
    ::close(device);
    errno = error;
    fail_with_errno("mounting a file system");
  }
  void* const shared = ::mmap(nullptr, sizeof(Faults), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail_with_errno("shared memory");
  faults_ = new (shared) Faults;
  server_ = ::fork();
  if (server_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Server(device, *faults_).serve();
  }
  ::close(device);
}

FaultyFiles::~FaultyFiles() {
  ::umount2(folder_.c_str(), MNT_FORCE | MNT_DETACH);
  ::kill(server_, SIGKILL);
  ::waitpid(server_, nullptr, 0);
  ::munmap(faults_, sizeof(Faults));
}

}  // namespace feedrate::test
