#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "common/error.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/sweep/recorder.hpp"
#include "schema.hpp"

namespace feedrate {
namespace {

using Adapter = valijson::adapters::NlohmannJsonAdapter;

/// Prints what is wrong with a row; true when nothing is.
bool check_row(const valijson::Schema& schema, const Json& row, const std::string& where) {
  valijson::Validator validator;
  valijson::ValidationResults results;
  const Adapter adapter(row);
  if (validator.validate(schema, adapter, &results)) return true;
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    std::string path;
    for (const auto& part : error.context) path += part;
    fmt::print(stderr, "{}: {}: {}\n", where, path, error.description);
  }
  return false;
}

int validate(const std::vector<std::string>& files) {
  const Json document = Json::parse(kRowSchema);
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(Adapter(document), schema);
  std::size_t rows = 0, wrong = 0;
  for (const std::string& file : files) {
    std::ifstream input(file);
    if (!input || std::filesystem::is_directory(file)) throw BadInput("FILE", file, "a readable JSONL file");
    std::size_t number = 0;
    for (std::string line; std::getline(input, line);) {
      const std::string where = fmt::format("{}:{}", file, ++number);
      ++rows;
      const Json row = Json::parse(line, nullptr, false);
      if (row.is_discarded()) {
        fmt::print(stderr, "{}: not valid JSON{}\n", where, input.eof() ? " (cut off)" : "");
        ++wrong;
      } else if (!check_row(schema, row, where)) {
        ++wrong;
      }
    }
  }
  fmt::print("{} rows, {} wrong\n", rows, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  auto files = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("validate", "check result files against the rows' schema");
  command->add_option("FILE", *files, "JSONL files")->required();
  command->callback([files, &action] { action = [files] { return validate(*files); }; });
}

}  // namespace feedrate
