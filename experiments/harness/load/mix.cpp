#include "experiments/harness/load/mix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <sstream>

#include "common/error.hpp"
#include "common/units.hpp"

namespace feedrate {
namespace {

constexpr std::size_t kPiece = 16;
constexpr auto kShares = "SIZE:SHARE,SIZE:SHARE,… (64:0.9,4Ki:0.1) or lognormal:MEDIAN:SIGMA (lognormal:1Ki:1)";

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, by);) words.push_back(word);
  return words;
}

Mix parse_shares(const std::string& option, const std::string& text, const std::string& allowed, std::size_t most) {
  std::vector<Mix::Part> parts;
  double total = 0;
  for (const std::string& part : split(text, ',')) {
    const auto words = split(part, ':');
    if (words.size() != 2) throw BadInput(option, text, allowed);
    const auto value = parse_count(option, words[0]);
    const double share = parse_number(option, words[1]);
    if (share <= 0 || !std::isfinite(share) || value > most) throw BadInput(option, text, allowed);
    parts.push_back({static_cast<std::size_t>(value), total += share});
  }
  if (parts.empty()) throw BadInput(option, text, allowed);
  for (auto& part : parts) part.up_to /= total;
  parts.back().up_to = 1;
  return Mix(std::move(parts));
}

}  // namespace

std::vector<std::size_t> Mix::values() const {
  if (parts_.empty()) return {kPiece, max_};
  std::vector<std::size_t> values(parts_.size());
  std::transform(parts_.begin(), parts_.end(), values.begin(), [](const Part& part) { return part.value; });
  return values;
}

std::size_t Mix::pick(double u) const {
  return std::find_if(parts_.begin(), parts_.end() - 1, [&](const Part& part) { return u <= part.up_to; })->value;
}

std::size_t Mix::lognormal(double u1, double u2) const {
  const double normal = std::sqrt(-2 * std::log(u1)) * std::cos(2 * std::numbers::pi * u2);  // Box and Muller, 1958
  const double size = std::min(median_ * std::exp(sigma_ * normal), static_cast<double>(max_));
  return std::min((static_cast<std::size_t>(size) + kPiece - 1) / kPiece * kPiece, max_);
}

Mix parse_payload_mix(const std::string& text, std::size_t most) {
  constexpr std::size_t kMaxPayload = std::size_t{64} << 20;
  if (!text.starts_with("lognormal:")) return parse_shares("--payload-mix", text, kShares, kMaxPayload);
  const auto words = split(text, ':');
  if (words.size() != 3) throw BadInput("--payload-mix", text, kShares);
  const auto median = static_cast<double>(parse_count("--payload-mix", words[1]));
  const double sigma = parse_number("--payload-mix", words[2]);
  if (median < 1 || sigma <= 0 || sigma > 10) throw BadInput("--payload-mix", text, kShares);
  return {median, sigma, most};
}

Mix parse_priority_mix(const std::string& text) {
  constexpr std::size_t kLowest = 7;
  return parse_shares("--priority-mix", text,
                      "PRIORITY:SHARE,… with priorities 0 (highest) to 7, for example 0:0.1,1:0.9", kLowest);
}

}  // namespace feedrate
