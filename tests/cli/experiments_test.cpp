// Experiments other than feeding, axes that belong to one component, and compressed rows.
#include <lzma.h>
#include <zlib.h>

#include <algorithm>

#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class Experiments : public testing::Test {
 protected:
  Outcome run(const Words& more) {
    Words words{"run", "--device", "cpu", "--seconds", "0.05", "--warmup", "0"};
    words.insert(words.end(), more.begin(), more.end());
    return place_.run(words);
  }
  Workplace place_;
};

TEST_F(Experiments, LaunchProducesValidRows) {
  const Outcome outcome = run({"--experiment", "launch", "--kernels", "4", "--threads", "2", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json row = measured_in(outcome.out).at(0);
  EXPECT_EQ(row.at("status"), "ok") << row.at("reason");
  EXPECT_GT(row.at("figures").at("kernels_per_second"), 0);
  EXPECT_GT(row.at("figures").at("round_trip_ns").at("samples"), 0);
  EXPECT_EQ(row.at("details").at("verified").at("launched"), row.at("details").at("verified").at("ran"));
  EXPECT_EQ(row.at("params").at("kernels"), 4);
  EXPECT_FALSE(row.at("params").contains("queue"));
  place_.write("rows.jsonl", outcome.out);
  EXPECT_EQ(place_.run({"validate", "rows.jsonl"}).err, "");
}

TEST_F(Experiments, LaunchPrintsItsFiguresInATable) {
  const Outcome outcome = run({"--experiment", "launch", "--repetitions", "2"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* said : {"kernels_per_second", "round_trip_ns", "kernels/s", "2 repetitions, 2 ok"}) {
    EXPECT_NE(outcome.out.find(said), std::string::npos) << said << "\n" << outcome.out;
  }
}

TEST_F(Experiments, LaunchSweepCompletesAndResumes) {
  place_.write("s.json", R"({"experiment": "launch", "axes": {"form": ["plain", "graph"], "kernels": [1, 8]},
                             "run": {"seconds": 0.02, "repetitions": 2}})");
  const Outcome outcome = place_.run({"sweep", "s.json", "--device", "cpu", "--out", "out"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("NOT GPU results"), std::string::npos) << outcome.err;
  const auto cells = cells_of(place_ / "out" / "rows.jsonl");
  const auto afresh = std::ranges::count_if(cells, [](const Json& cell) { return cell.contains("afresh"); });
  EXPECT_EQ(cells.size() - afresh, 2u * 2 + 2) << "each graph point is skipped once, because it needs a GPU";
  EXPECT_GE(afresh, 2) << "the best point of plain launches must be measured afresh";
  for (const Json& cell : cells) {
    if (cell.contains("afresh")) {
      EXPECT_EQ(cell["afresh"]["of"], 2);
    }
  }
  for (const Json& cell : cells) {
    EXPECT_EQ(cell.at("experiment"), "launch");
    EXPECT_EQ(cell.at("status"), cell.at("params").at("form") == "graph" ? "skipped" : "ok");
  }
  EXPECT_TRUE(fs::exists(place_ / "out" / "catalogue.json"));
  EXPECT_EQ(place_.run({"validate", "out/rows.jsonl"}).code, 0);
  const Outcome again = place_.run({"sweep", "--resume", "out", "--device", "cpu"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(cells_of(place_ / "out" / "rows.jsonl").size(), cells.size());
}

TEST_F(Experiments, HelpGroupsAxesByOwner) {
  const std::string help = place_.run({"run", "--help"}).out;
  const auto own = help.find("AXES of gpu_ring"), lanes = help.find("--lanes");
  ASSERT_NE(own, std::string::npos);
  EXPECT_LT(own, lanes);
  EXPECT_LT(help.find("--payload"), own);
}

/// The page's generated table of axes.
std::string table_in(const std::string& page) {
  const auto from = page.find("<!-- axes:begin -->\n"), to = page.find("<!-- axes:end -->");
  return from == page.npos || to == page.npos ? "no table" : page.substr(from, to - from);
}

// The page gives the command that regenerates its table. The command runs here on a copy whose table lacks a row.
TEST_F(Experiments, PageListsTheAxesOfTheCatalogue) {
  const std::string page = read_text(source_dir() / "experiments/reference.md");
  const std::string command =
      "feedrate list --markdown feeding |\n"
      "  sed -i -e '/^<!-- axes:begin/r /dev/stdin' -e '/^<!-- axes:begin/,/^<!-- axes:end/{/^|/d}' "
      "experiments/reference.md\n";
  EXPECT_NE(page.find("```sh\n" + command + "```"), std::string::npos) << "the page lacks this command:\n" << command;
  const auto row = page.find("| `payload` | all | 0");
  ASSERT_NE(row, std::string::npos);
  fs::create_directory(place_ / "experiments");
  const fs::path copy = place_ / "experiments/reference.md";
  write_text(copy, page.substr(0, row) + page.substr(page.find('\n', row) + 1));
  const std::string path = fs::path(executable()).parent_path().string() + ":" + from_environment("PATH", "/usr/bin");
  Process shell({"sh", "-c", command}, place_.path(), place_ / "shell", {{"PATH", path}});
  ASSERT_EQ(shell.wait(), 0) << shell.err();
  EXPECT_EQ(table_in(page), table_in(read_text(copy)))
      << "The page is stale. Run in the repository's root, with build/…/bin in PATH:\n"
      << command;
  EXPECT_EQ(read_text(copy).size() - table_in(read_text(copy)).size(), page.size() - table_in(page).size());
}

/// Compresses text with xz, as for rows in git, or with gzip.
void compress(const std::string& text, const fs::path& file) {
  if (file.extension() == ".xz") {
    std::string packed(lzma_stream_buffer_bound(text.size()), '\0');
    std::size_t size = 0;
    ASSERT_EQ(
        lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()),
                                text.size(), reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size()),
        LZMA_OK);
    return write_text(file, packed.substr(0, size));
  }
  gzFile to = gzopen(file.c_str(), "wb");
  gzwrite(to, text.data(), static_cast<unsigned>(text.size()));
  gzclose(to);
}

TEST_F(Experiments, CompressedRowsAreValidatedButNotExtended) {
  place_.write("s.json", R"({"axes": {"queue": "null"}, "run": {"messages": 200, "warmup": 0}})");
  ASSERT_EQ(place_.run({"sweep", "s.json", "--device", "cpu", "--out", "out"}).code, 0);
  const std::string rows = read_text(place_ / "out/rows.jsonl");
  fs::remove(place_ / "out/rows.jsonl");
  for (const auto& [ending, unpack] : {std::pair{".gz", "gunzip"}, {".xz", "unxz"}}) {
    const auto file = [&, &ending = ending](const std::string& name) { return name + ".jsonl" + ending; };
    compress(rows, place_ / file("out/rows"));
    EXPECT_NE(place_.run({"validate", file("out/rows")}).out.find(" 0 invalid"), std::string::npos);
    compress(rows + "{\"kind\": \"cell\"}\n{\"cut", place_ / file("bad"));
    const Outcome bad = place_.run({"validate", file("bad")});
    EXPECT_EQ(bad.code, 1);
    EXPECT_NE(bad.out.find(" 2 invalid"), std::string::npos) << bad.out;
    const std::string whole = read_text(place_ / file("out/rows"));
    write_text(place_ / file("cut"), whole.substr(0, 200));
    write_text(place_ / file("damaged"), whole.substr(0, 200) + "damage" + whole.substr(206));
    for (const char* name : {"cut", "damaged"}) EXPECT_EQ(place_.run({"validate", file(name)}).code, 2) << name;
    const Outcome resumed = place_.run({"sweep", "--resume", "out", "--device", "cpu"});
    EXPECT_EQ(resumed.code, 2);
    EXPECT_NE(resumed.err.find(unpack), std::string::npos) << resumed.err;
    fs::remove(place_ / file("out/rows"));
  }
}

TEST_F(Experiments, RowsOfOlderSchemaAreNotExtended) {
  place_.write("s.json", R"({"axes": {"queue": "null"}, "run": {"messages": 200, "warmup": 0}})");
  ASSERT_EQ(place_.run({"sweep", "s.json", "--device", "cpu", "--out", "out"}).code, 0);
  write_text(place_ / "out/rows.jsonl", "{\"schema\":1,\"kind\":\"cell\"}\n");
  const Outcome outcome = place_.run({"sweep", "--resume", "out", "--device", "cpu"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("schema 1"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace feedrate::cli_test
