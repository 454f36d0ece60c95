#include "experiments/daemons/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

#include "experiments/harness/json.hpp"

namespace feedrate {
namespace {

/// The message as a JSON string; bytes that are not UTF-8 are escaped.
class JsonText final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
    const std::string text = dumped(std::string(message.payload.begin(), message.payload.end()));
    to.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<JsonText>(); }
};

}  // namespace

void log_as_json() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<JsonText>('*').set_pattern(
      R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","process":%P,"message":%*})");
  spdlog::set_formatter(std::move(formatter));
}

}  // namespace feedrate
