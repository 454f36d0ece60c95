#include <fmt/format.h>

#include <map>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "experiments/cli/commands.hpp"
#include "experiments/harness/json.hpp"
#include "experiments/harness/say.hpp"
#include "experiments/harness/sweep/recorder.hpp"
#include "schema.hpp"

namespace feedrate {
namespace {

using Adapter = valijson::adapters::NlohmannJsonAdapter;

/// A parsed JSON schema.
class Schema {
 public:
  explicit Schema(const char* text) {
    const Json document = Json::parse(text);
    valijson::SchemaParser parser;
    parser.populateSchema(Adapter(document), schema_);
  }
  /// Prints each violation; returns true if there is none.
  bool holds(const Json& json, const std::string& where) const {
    valijson::Validator validator;
    valijson::ValidationResults results;
    const Adapter adapter(json);
    if (validator.validate(schema_, adapter, &results)) return true;
    valijson::ValidationResults::Error error;
    while (results.popError(error)) {
      std::string path;
      for (const auto& part : error.context) path += part;
      say("{}: {}: {}\n", where, path, error.description);
    }
    return false;
  }

 private:
  valijson::Schema schema_;
};

/// Checks rows against the schema of all rows, and cells also against their experiment's schema.
class RowSchemas {
 public:
  RowSchemas() : row_(kRowSchema) {
    for (const auto& [experiment, text] : kCellSchemas) cells_.try_emplace(experiment, text);
  }
  bool hold(const Json& row, const std::string& where) const {
    if (!row_.holds(row, where)) return false;
    const auto own = row["kind"] == "cell" ? cells_.find(row["experiment"]) : cells_.end();
    return own == cells_.end() || own->second.holds(row, where);
  }

 private:
  Schema row_;
  std::map<std::string, Schema> cells_;
};

int validate(const std::vector<std::string>& files) {
  const RowSchemas schemas;
  std::size_t rows = 0, wrong = 0;
  for (const std::string& file : files) {
    const RowLines lines = read_lines(file);
    for (std::size_t k = 0; k < lines.whole.size(); ++k) {
      const std::string where = fmt::format("{}:{}", file, k + 1);
      const Json row = Json::parse(lines.whole[k], nullptr, false);
      ++rows;
      if (row.is_discarded()) {
        say("{}: not valid JSON\n", where);
        ++wrong;
      } else if (!schemas.hold(row, where)) {
        ++wrong;
      }
    }
    if (lines.cut.empty()) continue;
    say("{}:{}: not valid JSON (cut off)\n", file, lines.whole.size() + 1);
    ++rows;
    ++wrong;
  }
  fmt::print("{} rows, {} invalid\n", rows, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

void add_validate(Program& program) {
  auto files = std::make_shared<std::vector<std::string>>();
  CLI::App* command = program.app.add_subcommand("validate", "check result files against the row schema");
  command->add_option("FILE", *files, "rows.jsonl files, compressed (.gz, .xz) or not")->required();
  program.on_choice(*command, [files] { return validate(*files); });
}

}  // namespace feedrate
