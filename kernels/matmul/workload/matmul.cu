#include <cmath>

#include "kernels/workload_of.hpp"

/// The workload `matmul`: one small product per message, by rungs of the ladder that need only the threads of one
/// message.
namespace feedrate {
namespace {

/// A message contains two square matrices of floats in rows, A and B; the result is A × B. The elements are whole
/// numbers from -4 to 4, so sums are exact and the CPU's reference agrees bit for bit.
struct MatmulWork {
  static constexpr auto kName = "matmul";
  static constexpr auto kDescription =
      "product of the payload's two square float matrices of n x n elements, n a multiple of 4: 8 n^2 bytes; "
      "--work-rung "
      "chooses the kernel";

  struct Options {
    std::string rung = "register_tiles";
  };
  static const Axes<Options>& axes() {
    static const auto kAxes = Axes<Options>().word(
        "work-rung", &Options::rung, {"naive", "register_tiles"},
        "kernel of a product: one element after another, or 2 x 4 elements in registers per thread");
    return kAxes;
  }

  explicit MatmulWork(const Options& options) : tiles(options.rung == "register_tiles") {}

  bool tiles;

  FEEDRATE_HD static std::size_t side_of(std::size_t bytes) {
    std::size_t side = 0;
    while (8 * (side + 4) * (side + 4) <= bytes) side += 4;
    return side;
  }
  FEEDRATE_HD static bool accepts(std::size_t bytes) {
    const std::size_t side = side_of(bytes);
    return side != 0 && 8 * side * side == bytes;
  }
  FEEDRATE_HD static std::size_t result_bytes(std::size_t payload) { return payload / 2; }
  static std::string why_unsupported(std::size_t payload) {
    return accepts(payload) ? "" : "matmul needs 8 n^2 bytes, n a multiple of 4: 128, 512, 2048, 8192, 32768, …";
  }

  template <class Group>
  FEEDRATE_HD std::uint32_t operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    const std::size_t side = side_of(bytes), pieces = side / 4;  // pieces of four elements per row
    const Vec16* const left = in;
    const Vec16* const right = in + side * pieces;
    std::uint32_t sum = 0;
    if (!tiles) {
      for (std::size_t i = group.rank(); i < side * pieces; i += group.size()) {
        out[i] = four_elements(left + i / pieces * pieces, right + i % pieces, pieces);
        sum += sum_of(out[i]);
      }
      return sum;
    }
    for (std::size_t i = group.rank(); i < side / 2 * pieces; i += group.size()) {
      const std::size_t row = i / pieces * 2, column = i % pieces;
      Vec16 tile[2];
      two_rows(left + row * pieces, right + column, pieces, tile);
      for (unsigned r = 0; r < 2; ++r) {
        out[(row + r) * pieces + column] = tile[r];
        sum += sum_of(tile[r]);
      }
    }
    return sum;
  }

  /// Makes each word of the payload a whole number from -4 to 4.
  static void shape(std::byte* payload, std::size_t bytes) {
    for (std::size_t at = 0; at + sizeof(float) <= bytes; at += sizeof(float)) {
      std::uint32_t word = 0;
      std::memcpy(&word, payload + at, sizeof word);
      const auto value = static_cast<float>(static_cast<int>(word % 9) - 4);
      std::memcpy(payload + at, &value, sizeof value);
    }
  }

  static void reference(const std::byte* payload, std::size_t bytes, std::byte* result) {
    const std::size_t side = side_of(bytes);
    std::vector<float> words(2 * side * side);
    std::memcpy(words.data(), payload, bytes);
    for (std::size_t row = 0; row < side; ++row) {
      for (std::size_t column = 0; column < side; ++column) {
        float sum = 0;
        for (std::size_t k = 0; k < side; ++k) sum += words[row * side + k] * words[(side + k) * side + column];
        std::memcpy(result + (row * side + column) * sizeof sum, &sum, sizeof sum);
      }
    }
  }

 private:
  FEEDRATE_HD static std::uint32_t sum_of(const Vec16& piece) {
    return piece.word[0] + piece.word[1] + piece.word[2] + piece.word[3];
  }
  /// Four elements of a row, each by its own loop over k.
  FEEDRATE_HD static Vec16 four_elements(const Vec16* row, const Vec16* columns, std::size_t pieces) {
    Vec16 made;
    for (unsigned c = 0; c < 4; ++c) {
      float sum = 0;
      for (std::size_t k = 0; k < 4 * pieces; ++k) {
        sum += to_float(row[k / 4].word[k % 4]) * to_float(columns[k * pieces].word[c]);
      }
      made.word[c] = to_bits(sum);
    }
    return made;
  }
  /// 2 × 4 elements; six loads of 16 bytes for 32 multiply-adds. A resident kernel has 64 registers per thread.
  FEEDRATE_HD static void two_rows(const Vec16* rows, const Vec16* columns, std::size_t pieces, Vec16 (&made)[2]) {
    float sums[2][4] = {};
    for (std::size_t k = 0; k < pieces; ++k) {
      const Vec16 left[2] = {rows[k], rows[pieces + k]};
      for (unsigned i = 0; i < 4; ++i) {
        const Vec16 right = columns[(4 * k + i) * pieces];
        for (unsigned row = 0; row < 2; ++row) {
          for (unsigned c = 0; c < 4; ++c) sums[row][c] += to_float(left[row].word[i]) * to_float(right.word[c]);
        }
      }
    }
    for (unsigned row = 0; row < 2; ++row) {
      for (unsigned c = 0; c < 4; ++c) made[row].word[c] = to_bits(sums[row][c]);
    }
  }
};

const WorkloadRegistration<MatmulWork> registered;

}  // namespace
}  // namespace feedrate
