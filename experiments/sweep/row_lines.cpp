#include "experiments/sweep/row_lines.hpp"

#include <zlib.h>

#include <memory>
#include <sstream>

#include "common/error.hpp"

namespace feedrate {

RowLines read_lines(const std::filesystem::path& file) {
  // zlib reads what is not compressed as it is.
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> input(gzopen(file.c_str(), "rb"), gzclose);
  if (!input || std::filesystem::is_directory(file)) throw BadInput("FILE", file.string(), "a readable JSONL file");
  std::string text;
  std::vector<char> buffer(1 << 16);
  int got = 0;
  while ((got = gzread(input.get(), buffer.data(), static_cast<unsigned>(buffer.size()))) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  int code = Z_OK;
  const char* const reason = gzerror(input.get(), &code);
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    throw BadInput("FILE", file.string(), std::string("a whole compressed file (") + reason + ")");
  }
  RowLines lines;
  std::istringstream stream(text);
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
