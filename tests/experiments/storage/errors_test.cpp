// Every error that storage can meet, on every engine that can meet it. The table of
// experiments/storage/errors.md lists the cases and what becomes of them; a test compares it with the lists below.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "common/clock.hpp"
#include "experiments/harness/measure/session.hpp"
#include "experiments/storage/options.hpp"
#include "tests/support/faulty_files.hpp"
#include "tests/support/storage_errors.hpp"
#include "tests/support/temp_dir.hpp"

namespace feedrate::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSize = 1 << 20, kBlock = 16 << 10;  // bytes of each of two files, and of a block

/// An engine with values of its own axes.
struct TestedEngine {
  std::string name;
  Values values;
  bool writes = true, direct = true, pins = true;
};
void PrintTo(const TestedEngine& engine, std::ostream* out) { *out << engine.name; }
const std::vector<TestedEngine>& engines_to_test() {
  static const auto word = [](const char* text) { return std::string(text); };
  static const std::vector<TestedEngine> kEngines{
      {"pread", {}, true, true, false},
      {"pread_pinned", {}},
      {"threads", {{"readers", std::uint64_t{2}}}},
      {"mmap registered", {{"mapping", word("registered")}}, false, false},
      {"mmap slots", {{"mapping", word("slots")}}, false, false},
      {"io_uring", {}},
      {"gpu_rings host", {{"ring-issue", word("host")}, {"gpu-threads", std::uint64_t{128}}}},
      {"gpu_rings gpu", {{"ring-issue", word("gpu")}, {"gpu-threads", std::uint64_t{128}}}, false}};
  return kEngines;
}

/// A cause of errors, and what rows must say about it.
struct ErrorCase {
  std::string name;
  std::string row;    ///< "failed" or "ok"
  std::string gives;  ///< what the reason gives
  /// Why an engine cannot meet the case; empty if it can.
  std::function<std::string(const TestedEngine&)> why_not = [](const TestedEngine&) { return std::string(); };
};
void PrintTo(const ErrorCase& one, std::ostream* out) { *out << one.name; }
std::string needs_writing(const TestedEngine& engine) { return engine.writes ? "" : "only reads"; }
std::string needs_calls(const TestedEngine& engine) { return engine.direct ? "" : "reads pages"; }
std::string needs_direct(const TestedEngine& engine) { return engine.direct ? "" : "no O_DIRECT"; }
std::string needs_pinning(const TestedEngine& engine) { return engine.pins ? "" : "pins no memory"; }

const std::vector<ErrorCase>& cases() {
  static const std::vector<ErrorCase> kCases{
      {"short reads", "ok", "", needs_calls},
      {"file truncated while it is read", "failed", "file, offset, sizes"},
      {"file replaced", "failed", "file"},
      {"file removed", "failed", "file"},
      {"EIO in the middle of a file", "failed", "file, offset, EIO"},
      {"medium removed", "failed", "device, offset, EIO"},
      {"no permission", "failed", "file, EACCES"},
      {"too little lockable memory", "failed", "bytes, `ulimit -l`", needs_pinning},
      {"no device memory", "failed", "call"},
      {"disk full while writing", "failed", "file, offset, ENOSPC", needs_writing},
      {"misaligned blocks with O_DIRECT", "ok", "", needs_direct},
      {"signals, EINTR", "ok", ""},
      {"request that never ends", "failed", "file, offset, time"}};
  return kCases;
}

RunSettings brief() {
  RunSettings settings;
  settings.warmup_seconds = 0;
  settings.watchdog_seconds = 20;
  settings.keep_disturbed = true;  // tests run on shared machines
  return settings;
}

class StorageErrors : public testing::TestWithParam<std::tuple<ErrorCase, TestedEngine>> {
 protected:
  void SetUp() override {
    if (const auto reason = entry().unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  }
  const TestedEngine& engine() const { return std::get<1>(GetParam()); }
  std::string engine_name() const { return engine().name.substr(0, engine().name.find(' ')); }
  const EngineEntry& entry() const { return Engines::instance().get("", engine_name()); }
  bool on_device() const { return engine().name == "gpu_rings gpu"; }

  Resolution point(const Values& more = {}) {
    Values values = engine().values;
    values.insert({{"engine", engine_name()},
                   {"folder", folder.path().string()},
                   {"files", std::uint64_t{2}},
                   {"size", kSize},
                   {"block", kBlock},
                   {"depth", std::uint64_t{4}}});
    for (const auto& [name, value] : more) values[name] = value;
    Resolution made = session.resolve(values);
    EXPECT_EQ(made.impossible, "");
    return made;
  }
  /// Measures a cell. Cells with cold blocks get a long phase, which ends when every block has been read once.
  Json cell(const Values& more = {}) { return cell(more, more.contains("residency") ? kLong : kShort); }
  /// On a busy machine, a phase may end before the first block: a longer one is then measured.
  Json cell(const Values& more, double seconds) {
    Json row;
    for (int attempt = 0; attempt < 5; ++attempt, seconds *= 4) {
      RunSettings settings = session.settings();
      settings.seconds = seconds;
      session.exchange_settings(settings);
      row = session.run_cell(point(more), repetition++);
      if (row.at("cause") != "no_results") break;
    }
    return row;
  }
  void expect_ok(const Json& row) { EXPECT_EQ(row.at("status"), "ok") << row.at("reason"); }
  /// Each of `parts` occurs in the reason.
  void expect_failed(const Json& row, const std::vector<std::string>& parts) {
    EXPECT_EQ(row.at("status"), "failed") << row.dump(1);
    for (const std::string& part : parts) {
      EXPECT_NE(row.at("reason").get<std::string>().find(part), std::string::npos) << part << ": " << row.at("reason");
    }
    EXPECT_FALSE(row.contains("figures")) << "a failed row has no throughput";
  }
  /// Calls `act` while blocks are read.
  void during_cell(std::function<void()> act) {
    plan->act = std::move(act);
    plan->launches = on_device() ? 1 : 3;
  }
  /// The message of the engine itself, without an experiment.
  std::string failure_to_open(std::span<const File> opened) {
    try {
      const PointConfig config{{opened, session.device(), Operation::read, false, kBlock, 4}, engine().values};
      if (on_device()) {
        entry().access(config, {});
      } else {
        entry().make(config);
      }
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "accepted";
  }
  /// The files of the latest cell.
  std::string file(const char* name) const {
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if (fs::exists(entry.path() / name)) return entry.path() / name;
    }
    return "";
  }
  void mount() {
    try {
      files.emplace(folder.path());
    } catch (const std::system_error& error) {
      GTEST_SKIP() << "needs FUSE: " << error.what();
    }
  }
  static Values word(const char* name, const char* value) { return {{name, std::string(value)}}; }
  Values cold(bool direct = false) const {
    return {{"residency", std::string("cold")}, {"direct", std::string(direct ? "yes" : "no")}};
  }

  static constexpr double kShort = 0.03, kLong = 60;  // seconds
  test::TempDir folder;
  std::optional<test::FaultyFiles> files;  // mounted before threads start
  std::shared_ptr<test::MeddlingDevice::Plan> plan = std::make_shared<test::MeddlingDevice::Plan>();
  Session session{"storage", "cpu", 0, {}, "test", brief(), std::make_unique<test::MeddlingDevice>(plan)};
  unsigned repetition = 0;
};

class ShortReads : public StorageErrors {};
TEST_P(ShortReads, AreContinued) {
  mount();
  if (IsSkipped()) return;
  files->faults().past_cache = true;
  files->faults().longest_read = 4096;
  const Json row = cell(cold());
  EXPECT_GE(files->faults().injected, 3u);
  if (engine_name() == "io_uring" || engine_name() == "gpu_rings") {
    // io_uring continues a short read by itself, and in Linux 6.18 at the wrong offset if the file system is FUSE.
    if (row.at("status") != "ok") expect_failed(row, {"0.bin", "at offset ", "words are wrong in device memory"});
  } else {
    expect_ok(row);
  }
  files->faults().longest_read = 0;
  expect_ok(cell(cold()));
}

class Truncated : public StorageErrors {};
TEST_P(Truncated, IsReported) {
  during_cell([&] { fs::resize_file(file("0.bin"), kSize / 2); });
  const Json row = cell({}, kLong);  // ends when the missing blocks are read
  expect_failed(row, {"0.bin", "the file ended: 0 of 16384 bytes", "read of 16384 bytes at offset ",
                      "changed from 1048576 to 524288 bytes"});
  expect_ok(cell());
}

class Replaced : public StorageErrors {};
TEST_P(Replaced, IsReported) {
  std::string path;
  during_cell([&] {
    path = file("1.bin");
    fs::copy(path, path + ".new");
    fs::rename(path + ".new", path);
  });
  const Json row = cell();
  expect_failed(row, {path, "replaced by another file"});
  expect_ok(cell());
  fs::resize_file(file("0.bin"), kBlock);
  expect_ok(cell());  // files that changed between cells are replaced
}

class Removed : public StorageErrors {};
TEST_P(Removed, IsReported) {
  std::string path;
  during_cell([&] { fs::remove(path = file("1.bin")); });
  const Json row = cell();
  expect_failed(row, {path, "was removed"});
  expect_ok(cell());
}

class ReadError : public StorageErrors {};
TEST_P(ReadError, IsReported) {
  mount();
  if (IsSkipped()) return;
  files->faults().begin = 512 << 10;
  files->faults().end = (512 << 10) + 4096;
  files->faults().read_error = EIO;
  expect_failed(cell(cold()), {"0.bin", "read of 16384 bytes at offset 524288 of ", "Input/output error"});
  EXPECT_GT(files->faults().injected, 0u);
  files->faults().read_error = 0;
  expect_ok(cell(cold()));
}

class MediumRemoved : public StorageErrors {};
TEST_P(MediumRemoved, IsReported) {
  try {
    constexpr std::uint64_t kMedium = 16 * kSize;  // far more than the kernel reads ahead
    const test::FileDevice device(folder / "medium", kMedium);
    Values values = cold(engine().direct);
    values.insert({{"target", device.path()}, {"overwrite", std::string("yes")}, {"size", kMedium}});
    during_cell([&] { device.remove_medium(); });
    expect_failed(cell(values), {device.path(), "read of 16384 bytes at offset ", "Input/output error"});
    device.return_medium();
    expect_ok(cell(values));
  } catch (const std::system_error& error) {
    GTEST_SKIP() << "needs a loop device: " << error.what();
  }
}

class NoPermission : public StorageErrors {};
TEST_P(NoPermission, IsReported) {
  expect_ok(cell());
  const fs::path path = file("0.bin");
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(path.parent_path(), fs::perms::all);
  fs::permissions(path, fs::perms::none);
  {
    const test::Unprivileged unprivileged;
    const std::vector<File> one{{path, kSize}};
    EXPECT_EQ(failure_to_open(one), "cannot open " + path.string() + ": Permission denied");
    expect_failed(cell(), {"cannot open " + path.string(), "Permission denied"});
  }
  expect_ok(cell());
}

class TooLittleLockable : public StorageErrors {};
TEST_P(TooLittleLockable, IsReported) {
  plan->no_pinned_memory = true;
  const bool maps = engine().name == "mmap registered";
  expect_failed(cell(), {"cudaHostRegister: out of memory", maps ? "the GPU cannot use the mapped file" : "ulimit -l"});
  plan->no_pinned_memory = false;
  expect_ok(cell());
}
/// These engines register memory with the kernel, so that the limit holds without a GPU.
class LowMemlock : public StorageErrors {};
TEST_P(LowMemlock, IsReported) {
  fs::permissions(folder.path(), fs::perms::all);
  const test::Unprivileged unprivileged;
  {
    const Resolution resolved = point();
    const test::LowerLimit limit(RLIMIT_MEMLOCK, 4096);
    expect_failed(session.run_cell(resolved, repetition++), {"io_uring", "Cannot allocate memory", "ulimit -l"});
  }
  const test::LowerLimit limit(RLIMIT_MEMLOCK, RLIM_INFINITY);
  expect_ok(cell());
}

class NoDeviceMemory : public StorageErrors {};
TEST_P(NoDeviceMemory, IsReported) {
  plan->no_device_memory = true;
  expect_failed(cell(), {"cudaMalloc: out of memory"});
  plan->no_device_memory = false;
  expect_ok(cell());
}

class DiskFull : public StorageErrors {};
TEST_P(DiskFull, IsReported) {
  mount();
  if (IsSkipped()) return;
  files->faults().write_error = ENOSPC;
  expect_failed(cell(word("operation", "write")), {"cannot write ", ".bin: No space left on device"});
  files->faults().write_error = 0;
  expect_ok(cell(word("operation", "write")));
  files->faults().begin = 256 << 10;
  files->faults().end = (256 << 10) + kBlock;
  files->faults().write_error = ENOSPC;
  expect_failed(cell(word("operation", "write"), kLong),
                {"0.bin", "write of 16384 bytes at offset 262144 of ", "No space left on device"});
  files->faults().write_error = 0;
  expect_ok(cell(word("operation", "write")));
  files->faults().sync_error = EIO;
  expect_failed(cell(word("operation", "write")), {"fsync of ", "0.bin", "Input/output error"});
}

class Misaligned : public StorageErrors {};
TEST_P(Misaligned, BlocksAreReadThroughThePageCache) {
  const int direct = ::open((folder / "probe").c_str(), O_RDWR | O_CREAT | O_DIRECT, 0600);
  if (direct < 0) GTEST_SKIP() << "O_DIRECT is not possible in " << folder.path();
  ::close(direct);
  Values values = cold(true);
  values["shift"] = std::uint64_t{4};
  const Json row = cell(values);
  if (row.at("reason").get<std::string>().starts_with("residency cold")) GTEST_SKIP() << row.at("reason");
  expect_ok(row);
  EXPECT_GT(row.at("details").at("path").at("resident_after"), 0.5) << "the cost is shown";
  expect_ok(cell(cold(true)));
}

class Interrupted : public StorageErrors {};
TEST_P(Interrupted, CallsAreContinued) {
  mount();
  if (IsSkipped()) return;
  if (engine().direct) {  // the kernel itself continues when it reads pages
    files->faults().past_cache = true;
    files->faults().interrupts = 5;
  }
  const test::SignalStorm storm;
  for (int n = 0; n < 3; ++n) expect_ok(cell(cold()));
  EXPECT_GT(storm.sent(), 0u);
  if (engine().direct) {
    EXPECT_GT(files->faults().injected, 10u);
  }
}

class NeverEnds : public StorageErrors {};
TEST_P(NeverEnds, IsReportedAndTheProcessContinues) {
  mount();
  if (IsSkipped()) return;
  expect_ok(cell(cold()));
  RunSettings impatient = session.settings();
  impatient.watchdog_seconds = 0.2;
  const RunSettings before = session.exchange_settings(impatient);
  files->faults().holds_reads = true;
  Values values = cold();
  if (engine_name() == "gpu_rings") values["ring-timeout"] = std::uint64_t{100};
  const std::uint64_t began = now_ns();
  const Json row = cell(values);
  EXPECT_LT(now_ns() - began, 15'000'000'000u);
  expect_failed(row, {"read of 16384 bytes at offset ", ".bin", "could not be stopped within 0.6 s"});
  EXPECT_EQ(row.at("cause"), "hung");
  EXPECT_GT(files->faults().injected, 0u);
  files->faults().holds_reads = false;
  session.exchange_settings(before);
  expect_ok(cell(cold()));
  // Threads that have been left to themselves end, and release the files that they used.
  const auto folders = [&] { return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()); };
  for (int n = 0; n < 1000 && folders() > 1; ++n) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(folders(), 1);
}

/// A completion that never arrives, in the queues of device threads.
class LostCompletion : public StorageErrors {};
TEST_P(LostCompletion, IsReported) {
  Values values = word("ring-fault", "lost");
  values["ring-timeout"] = std::uint64_t{200};
  expect_failed(cell(values, kLong),
                {"read of 16384 bytes at offset ", ".bin", "no completion arrived", "(injected: lost)"});
  expect_ok(cell());
}

/// The table of errors.md: a row for each case, a column for each engine.
std::string table() {
  std::vector<std::string> names, rules, reasons;
  for (const TestedEngine& engine : engines_to_test()) {
    const std::size_t space = engine.name.find(' ');
    names.push_back(fmt::format("`{}`{}", engine.name.substr(0, space),
                                space == engine.name.npos ? "" : engine.name.substr(space)));
    rules.emplace_back("---");
  }
  std::string text =
      fmt::format("| case | the reason gives | {} |\n|---|---|{}|\n", fmt::join(names, " | "), fmt::join(rules, "|"));
  for (const ErrorCase& one : cases()) {
    std::vector<std::string> cells;
    for (const TestedEngine& engine : engines_to_test()) {
      const std::string reason = one.why_not(engine);
      cells.push_back(reason.empty() ? one.row : reason);
    }
    text += fmt::format("| {} | {} | {} |\n", one.name, one.gives.empty() ? "–" : one.gives, fmt::join(cells, " | "));
  }
  return text;
}

TEST(StorageErrorsTable, PageHasTheTable) {
  const char* const source = std::getenv("FEEDRATE_SOURCE_DIR");
  const std::string root = source != nullptr ? source : FEEDRATE_SOURCE_DIR;
  std::ifstream file(root + "/experiments/storage/errors.md");
  if (!file) GTEST_SKIP() << "the sources are not here";
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(page.find(table()), std::string::npos) << "the table of errors must be\n" << table();
}

std::string name_of(const testing::TestParamInfo<std::tuple<ErrorCase, TestedEngine>>& info) {
  std::string name = std::get<1>(info.param).name;
  std::ranges::replace(name, ' ', '_');
  return name;
}
auto on_every_engine(std::size_t index) {
  std::vector<std::tuple<ErrorCase, TestedEngine>> all;
  for (const TestedEngine& engine : engines_to_test()) {
    if (cases().at(index).why_not(engine).empty()) all.emplace_back(cases().at(index), engine);
  }
  return testing::ValuesIn(all);
}
INSTANTIATE_TEST_SUITE_P(Each, ShortReads, on_every_engine(0), name_of);
INSTANTIATE_TEST_SUITE_P(Each, Truncated, on_every_engine(1), name_of);
INSTANTIATE_TEST_SUITE_P(Each, Replaced, on_every_engine(2), name_of);
INSTANTIATE_TEST_SUITE_P(Each, Removed, on_every_engine(3), name_of);
INSTANTIATE_TEST_SUITE_P(Each, ReadError, on_every_engine(4), name_of);
INSTANTIATE_TEST_SUITE_P(Each, MediumRemoved, on_every_engine(5), name_of);
INSTANTIATE_TEST_SUITE_P(Each, NoPermission, on_every_engine(6), name_of);
INSTANTIATE_TEST_SUITE_P(Each, TooLittleLockable, on_every_engine(7), name_of);
INSTANTIATE_TEST_SUITE_P(Each, LowMemlock,
                         testing::Combine(testing::Values(cases().at(7)),
                                          testing::ValuesIn(std::vector(engines_to_test().end() - 3,
                                                                        engines_to_test().end()))),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Each, LostCompletion,
                         testing::Combine(testing::Values(cases().at(12)),
                                          testing::ValuesIn(std::vector(engines_to_test().end() - 2,
                                                                        engines_to_test().end()))),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Each, NoDeviceMemory, on_every_engine(8), name_of);
INSTANTIATE_TEST_SUITE_P(Each, DiskFull, on_every_engine(9), name_of);
INSTANTIATE_TEST_SUITE_P(Each, Misaligned, on_every_engine(10), name_of);
INSTANTIATE_TEST_SUITE_P(Each, Interrupted, on_every_engine(11), name_of);
INSTANTIATE_TEST_SUITE_P(Each, NeverEnds, on_every_engine(12), name_of);

}  // namespace
}  // namespace feedrate::storage
