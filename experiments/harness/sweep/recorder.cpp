#include "experiments/harness/sweep/recorder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <lzma.h>
#include <sys/file.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <utility>

#include "common/error.hpp"
#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {
namespace {

BadInput broken(const std::filesystem::path& file, const std::string& reason) {
  return {"FILE", file.string(), "a complete compressed file (" + reason + ")"};
}

/// Reads gzip, or plain text if the file is not compressed.
std::string read_gzip_or_plain(const std::filesystem::path& file) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> input(gzopen(file.c_str(), "rb"), gzclose);
  if (!input) throw BadInput("FILE", file.string(), "a readable JSONL file");
  std::string text;
  std::vector<char> buffer(1 << 16);
  int got = 0;
  while ((got = gzread(input.get(), buffer.data(), static_cast<unsigned>(buffer.size()))) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  int code = Z_OK;
  const char* const reason = gzerror(input.get(), &code);
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) throw broken(file, reason);
  return text;
}

std::string read_xz(const std::filesystem::path& file) {
  std::ifstream input(file, std::ios::binary);
  if (!input) throw BadInput("FILE", file.string(), "a readable JSONL file");
  const std::string packed{std::istreambuf_iterator<char>(input), {}};
  lzma_stream stream = LZMA_STREAM_INIT;
  const std::unique_ptr<lzma_stream, void (*)(lzma_stream*)> end(&stream, lzma_end);
  if (lzma_stream_decoder(&stream, UINT64_MAX, LZMA_CONCATENATED) != LZMA_OK) throw std::bad_alloc();
  stream.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  std::string text;
  std::vector<std::uint8_t> buffer(1 << 16);
  lzma_ret code = LZMA_OK;
  while (code == LZMA_OK) {
    stream.next_out = buffer.data();
    stream.avail_out = buffer.size();
    code = lzma_code(&stream, LZMA_FINISH);
    text.append(buffer.begin(), buffer.end() - static_cast<std::ptrdiff_t>(stream.avail_out));
  }
  if (code != LZMA_STREAM_END)
    throw broken(file, code == LZMA_BUF_ERROR ? "the file is truncated" : "the file is damaged");
  return text;
}

}  // namespace

Recorder::Recorder(std::filesystem::path file) : file_(std::move(file)) {
  for (const auto& [ending, unpack] : {std::pair{".gz", "gunzip"}, {".xz", "unxz"}}) {
    const std::filesystem::path compressed = file_.string() + ending;
    std::error_code none;  // an invalid path is reported by open()
    if (!std::filesystem::exists(file_, none) && std::filesystem::exists(compressed, none)) {
      throw BadInput(fmt::format("{}: the file is compressed; run `{} {}` before adding rows", file_.string(), unpack,
                                 compressed.string()));
    }
  }
  descriptor_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw BadInput(fmt::format("{}: cannot be written: {}", file_.string(), std::strerror(errno)));
  // A pipe or a device has no earlier rows.
  if (!std::filesystem::is_regular_file(file_)) return;
  // The kernel releases the lock when the process ends for any reason.
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    close(descriptor_);
    throw BadInput(fmt::format("{}: another process is writing to this file; wait until it has ended", file_.string()));
  }
  const std::size_t whole = read_earlier();
  if (ftruncate(descriptor_, static_cast<off_t>(whole)) != 0 || lseek(descriptor_, 0, SEEK_END) < 0) {
    throw BadInput(fmt::format("{}: cannot be written: {}", file_.string(), std::strerror(errno)));
  }
}

std::size_t Recorder::read_earlier() {
  std::size_t whole = 0;
  for (const std::string& line : read_lines(file_).whole) {
    try {
      earlier_.push_back(Json::parse(line));
    } catch (const Json::exception& error) {
      throw BadInput(
          fmt::format("{}: line {} is not valid JSON: {}", file_.string(), earlier_.size() + 1, text_of(error)));
    }
    const int version = earlier_.back().value("schema", 0);
    if (version != kRowSchemaVersion) {
      throw BadInput(fmt::format("{}: the rows have schema {}; this program writes schema {}", file_.string(), version,
                                 kRowSchemaVersion));
    }
    whole += line.size() + 1;
  }
  return whole;
}

Recorder::Recorder(Recorder&& other) noexcept
    : file_(std::move(other.file_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      earlier_(std::move(other.earlier_)) {}

Recorder::~Recorder() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Recorder::write(const Json& row) {
  const std::string line = dumped(row) + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(descriptor_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Failure(fmt::format("{}: could not write a row: {}", file_.string(), std::strerror(errno)));
    done += static_cast<std::size_t>(n);
  }
  fsync(descriptor_);
}

RowLines read_lines(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file)) throw BadInput("FILE", file.string(), "a readable JSONL file");
  std::istringstream stream(file.extension() == ".xz" ? read_xz(file) : read_gzip_or_plain(file));
  RowLines lines;
  for (std::string line; std::getline(stream, line);) {
    if (stream.eof()) {
      lines.cut = line;
    } else {
      lines.whole.push_back(line);
    }
  }
  return lines;
}

}  // namespace feedrate
