#include "common/threads/cpu_quota.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tests/support/temp_dir.hpp"

namespace feedrate {
namespace {

namespace fs = std::filesystem;

/// Models hosts and containers with files: `cgroup` and `mountinfo` of the process, and the files of its groups.
class Quota : public testing::Test {
 protected:
  CpuQuota read(const std::string& cgroup, const std::string& mountinfo,
                const std::map<std::string, std::string>& files) {
    write("proc/cgroup", cgroup);
    std::string mounts = mountinfo;
    for (std::size_t at = 0; (at = mounts.find("@", at)) != mounts.npos;)
      mounts.replace(at, 1, folder_.path().string());
    write("proc/mountinfo", mounts);
    for (const auto& [name, text] : files) write(name, text);
    return read_cpu_quota(folder_ / "proc");
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  test::TempDir folder_;

  static constexpr auto kV2 = "0::/a/b\n";
  static constexpr auto kV2Mount = "31 23 0:28 / @/cg rw,relatime shared:4 master:1 - cgroup2 cgroup2 rw\n";
  static constexpr auto kV1 = "9:name=systemd:/x\n4:cpu,cpuacct:/docker/c1\n3:cpuset:/\n0::/x\n";
  static constexpr auto kV1Mounts =
      "31 23 0:28 / @ rw - tmpfs tmpfs rw\n32 31 0:29 / @/cpuset rw - cgroup cgroup rw,cpuset\n"
      "33 31 0:30 / @/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
};

TEST_F(Quota, QuotaOnV2IsTheLowestOfAllParentGroups) {
  const CpuQuota quota = read(kV2, kV2Mount,
                              {{"cg/cpu.max", "max 100000\n"},
                               {"cg/a/cpu.max", "150000 100000\n"},
                               {"cg/a/b/cpu.max", "400000 200000\n"},
                               {"cg/a/cpu.stat", "usage_usec 7\nnr_periods 10\nnr_throttled 4\n"},
                               {"cg/a/b/cpu.stat", "nr_periods 20\nnr_throttled 1\n"}});
  EXPECT_EQ(quota.cores, 1.5);
  EXPECT_EQ(quota.groups.size(), 2u);
  EXPECT_EQ(read_throttling(quota).periods, 30u);
  EXPECT_EQ(read_throttling(quota).throttled, 5u);
}

TEST_F(Quota, QuotaOnV1IsReadFromQuotaAndPeriod) {
  const CpuQuota quota = read(kV1, kV1Mounts,
                              {{"cpu/docker/c1/cpu.cfs_quota_us", "50000\n"},
                               {"cpu/docker/c1/cpu.cfs_period_us", "100000\n"},
                               {"cpu/docker/c1/cpu.stat", "nr_periods 3\nnr_throttled 2\n"},
                               {"cpu/cpu.cfs_quota_us", "-1\n"},
                               {"cpu/cpu.cfs_period_us", "100000\n"}});
  EXPECT_EQ(quota.cores, 0.5);
  EXPECT_EQ(read_throttling(quota).throttled, 2u);
}

TEST_F(Quota, QuotaIsReadInAContainerMountedAtItsOwnGroup) {
  for (const char* cgroup : {"4:cpu:/docker/c1\n", "4:cpu:/\n", "4:cpu:/../c2\n"}) {
    const CpuQuota quota = read(cgroup, "33 31 0:30 /docker/c1 @/cpu rw - cgroup cgroup rw,cpu\n",
                                {{"cpu/cpu.cfs_quota_us", "250000\n"}, {"cpu/cpu.cfs_period_us", "100000\n"}});
    EXPECT_EQ(quota.cores, 2.5) << cgroup;
  }
}

TEST_F(Quota, QuotaIsEmptyWithoutALimit) {
  EXPECT_FALSE(read_cpu_quota("/nowhere").cores);
  EXPECT_FALSE(read("", "", {}).cores);
  EXPECT_FALSE(read("nonsense\n:\n", "1 2\n- cgroup2\n\n", {}).cores);
  EXPECT_FALSE(read(kV2, kV2Mount, {}).cores) << "the groups have no cpu controller";
  EXPECT_FALSE(read(kV2, kV2Mount, {{"cg/a/cpu.max", "max 100000\n"}}).cores);
  EXPECT_FALSE(read(kV2, kV2Mount, {{"cg/a/cpu.max", "1000 0\n"}}).cores);
  EXPECT_FALSE(read("3:cpuset:/\n", kV1Mounts, {{"cpuset/cpu.cfs_quota_us", "1"}}).cores);
  EXPECT_EQ(read_throttling({}).periods, 0u);
}

}  // namespace
}  // namespace feedrate
