#include "experiments/harness/sweep/row_lines.hpp"

#include <lzma.h>
#include <zlib.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "common/error.hpp"

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
