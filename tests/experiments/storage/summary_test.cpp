// The answer that the terminal shows after a sweep of storage.
#include <gtest/gtest.h>

#include <sstream>

#include "experiments/harness/sweep/progress.hpp"

namespace feedrate::storage {
namespace {

class StorageSummary : public testing::Test {
 protected:
  /// Adds three repetitions of a point, with rates around `rate` in GB/s.
  void add(const char* engine, double rate, const Json& params) {
    Json all{{"engine", engine},
             {"device", "cuda"},
             {"arrivals", "closed"},
             {"file_bytes", 1 << 30},
             {"block_bytes", 64 << 10}};
    all.update(params);
    for (const double factor : {0.99, 1.0, 1.01}) {
      summary->add({{"kind", "cell"},
                    {"status", "ok"},
                    {"params", all},
                    {"figures", {{"bytes_per_second", factor * rate * 1e9}}}});
    }
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::istringstream text(summary->text());
    for (std::string line; std::getline(text, line);) all.push_back(line);
    return all;
  }
  const ExperimentInfo info{"storage"};
  std::unique_ptr<Summary> summary = summary_of(info);
};

TEST_F(StorageSummary, EnginesAreComparedOnlyWithinATask) {
  add("threads", 20, {{"residency", "warm"}});
  add("mmap", 30, {{"residency", "warm"}});
  add("mmap", 25, {{"residency", "warm"}, {"depth", 4}});
  add("threads", 4, {{"residency", "cold"}, {"direct", "yes"}});
  add("io_uring", 4.01, {{"residency", "cold"}, {"direct", "yes"}});
  add("threads", 60, {{"residency", "warm"}, {"block_bytes", 4 << 20}});
  const std::vector<std::string> found = lines();
  ASSERT_EQ(found.size(), 4u) << summary->text();
  EXPECT_EQ(found[1], "  read sequential direct 64Ki io_uring or threads 4.01 GB/s ± 3 %");
  EXPECT_EQ(found[2], "  read sequential warm 64Ki   mmap                30 GB/s ± 3 %");
  EXPECT_EQ(found[3], "  read sequential warm 4Mi    threads             60 GB/s ± 3 %");
}

TEST_F(StorageSummary, SizeAndFolderAreShownIfTheyDiffer) {
  add("threads", 20, {{"folder", "/a"}});
  EXPECT_EQ(lines().at(1).find("of 1Gi"), std::string::npos);
  add("threads", 30, {{"folder", "/b"}});
  EXPECT_EQ(lines().at(2), "  read sequential warm 64Ki of 1Gi in /b threads 30 GB/s ± 3 %");
}

TEST_F(StorageSummary, LinesHaveAtMost80Columns) {
  add("threads", 20, {{"folder", "/a"}});
  add("threads", 20, {{"folder", "/a/folder/with/a/long/name"}});
  EXPECT_EQ(lines().at(3), "  read sequential warm 64Ki of 1Gi in /a/folder/with/a/long/name");
  EXPECT_EQ(lines().at(4), "    threads 20 GB/s ± 3 %");
}

TEST_F(StorageSummary, OpenLoadIsNotCompared) {
  add("threads", 20, {{"arrivals", "poisson"}});
  EXPECT_EQ(summary->text(), "");
}

TEST_F(StorageSummary, PointWithoutARateIsLeftOut) {
  summary->add({{"kind", "cell"},
                {"status", "invalid"},
                {"cause", "disturbed"},
                {"params", {{"engine", "threads"}, {"arrivals", "closed"}}}});
  EXPECT_EQ(lines().size(), 1u) << summary->text();
}

TEST_F(StorageSummary, ManyTasksFitOnAScreen) {
  for (unsigned n = 1; n <= 40; ++n) add("threads", n, {{"block_bytes", n * 4096}});
  EXPECT_EQ(lines().size(), 20u) << summary->text();
  EXPECT_EQ(lines().back(), "  and 22 more tasks, in the report");
}

}  // namespace
}  // namespace feedrate::storage
