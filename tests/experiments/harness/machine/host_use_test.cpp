#include "experiments/harness/machine/host_use.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

namespace feedrate {
namespace {

constexpr const char* kStat =
    "cpu  300 30 100 2000 50 6 4 40 20 0\n"
    "cpu0 100 10 50 1000 30 4 1 30 20 0\n"
    "cpu1 200 20 50 1000 20 2 3 10 0 0\n"
    "intr 18037713 0 9 0 0\n"
    "ctxt 604347435\n"
    "btime 1795247215\n"
    "procs_running 4\n";

/// Reading of a host at time `ns`.
HostReading reading(const char* stat, std::uint64_t ns = 0) { return {.at_ns = ns, .system = parse_proc_stat(stat)}; }
constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(ProcStat, TicksOfEveryCoreAreClassified) {
  const ProcStat stat = parse_proc_stat(kStat);
  ASSERT_EQ(stat.cores.size(), 2u);                          // the line with their sum is not a core
  EXPECT_EQ(stat.cores.at(0).busy, 100u + 10 + 50 + 4 + 1);  // user time already includes guest time
  EXPECT_EQ(stat.cores.at(0).idle, 1000u + 30);
  EXPECT_EQ(stat.cores.at(0).steal, 30u);
  EXPECT_EQ(stat.cores.at(1).steal, 10u);
  EXPECT_EQ(stat.context_switches, 604347435u);
}

TEST(ProcStat, ShortLinesOfOldKernelsAreAccepted) {
  const ProcStat stat = parse_proc_stat("cpu0 1 2 3 4\nctxt 5");  // also without a final newline
  EXPECT_EQ(stat.cores.at(0).busy, 6u);
  EXPECT_EQ(stat.cores.at(0).idle, 4u);
  EXPECT_EQ(stat.cores.at(0).steal, 0u);
  EXPECT_EQ(stat.context_switches, 5u);
}

TEST(ProcStat, InvalidLinesAreIgnored) {
  for (const char* text : {"", "\n\n", "cpu", "cpu0", "cpu0\n", "cpu0 1 2 3\n", "cpux 1 2 3 4\n", "cpu0 a b c d\n",
                           "cpu0 1 2 3 4 -5\n", "cpu0 1 2 3 4 5 6 7 99999999999999999999\n", "ctxt\n", "ctxt many\n"}) {
    const ProcStat stat = parse_proc_stat(text);
    EXPECT_TRUE(stat.cores.empty()) << text;
    EXPECT_FALSE(stat.context_switches) << text;
  }
  EXPECT_EQ(parse_proc_stat("cpu0 nonsense\ncpu1 1 2 3 4\n").cores.size(), 1u);  // the next line is still read
}

TEST(HostUse, SharesAreRelativeToTheTimeOfEachCore) {
  const HostUse use = host_use(reading("cpu0 0 0 0 0 0 0 0 0\ncpu1 50 0 0 50 0 0 0 5\nctxt 100\n", kSecond),
                               reading("cpu0 60 5 5 20 5 2 1 2\ncpu1 50 0 0 150 0 0 0 5\nctxt 350\n", 2 * kSecond));
  EXPECT_DOUBLE_EQ(use.seconds, 1);
  ASSERT_EQ(use.cores.size(), 2u);
  EXPECT_DOUBLE_EQ(use.cores[0].busy, 0.73);
  EXPECT_DOUBLE_EQ(use.cores[0].steal, 0.02);
  EXPECT_DOUBLE_EQ(use.cores[1].busy, 0);
  EXPECT_DOUBLE_EQ(use.busy_cores(), 0.73);
  EXPECT_DOUBLE_EQ(use.stolen_cores(), 0.02);
  EXPECT_EQ(use.system_switches, 250u);
}

TEST(HostUse, OtherCoresAreBusyCoresMinusOwnCores) {
  HostReading begin = reading("cpu0 0 0 0 0\ncpu1 0 0 0 0\n"),
              end = reading("cpu0 200 0 0 0\ncpu1 100 0 0 100\n", 2 * kSecond);
  begin.own_cpu_seconds = 5;
  end.own_cpu_seconds = 7;
  begin.own_voluntary_switches = 10;
  end.own_voluntary_switches = 30;
  end.own_involuntary_switches = 4;
  HostUse use = host_use(begin, end);
  EXPECT_DOUBLE_EQ(use.own_cores, 1);
  EXPECT_DOUBLE_EQ(use.other_cores(), 0.5);
  EXPECT_EQ(use.own_voluntary_switches, 20u);
  EXPECT_EQ(use.own_involuntary_switches, 4u);
  use.own_cores = 3;  // ticks and CPU seconds are counted differently
  EXPECT_DOUBLE_EQ(use.other_cores(), 0);
}

TEST(HostUse, OnlyCoresPresentThroughoutAreCounted) {
  const HostUse use =
      host_use(reading("cpu0 0 0 0 0\ncpu1 0 0 0 0\n"),
               reading("cpu0 50 0 0 50\ncpu2 900 0 0 100\n", kSecond));  // core 1 disappeared, core 2 appeared
  ASSERT_EQ(use.cores.size(), 1u);
  EXPECT_DOUBLE_EQ(use.busy_cores(), 0.5);
}

TEST(HostUse, CountersMayBeHugeWrapOrDecrease) {
  const HostUse use = host_use(reading("cpu0 18446744073709551600 0 0 18446744073709551500 0 0 0 7\n"),
                               reading("cpu0 34 0 0 18446744073709551550 0 0 0 3\n", kSecond));
  ASSERT_EQ(use.cores.size(), 1u);
  EXPECT_DOUBLE_EQ(use.cores[0].busy, 0.5);  // 50 busy ticks across the wrap, 50 idle ticks
  EXPECT_DOUBLE_EQ(use.cores[0].steal, 0);   // decreased by 4 ticks
}

TEST(HostUse, CoresAreOmittedIfTicksAreTooCoarse) {
  EXPECT_TRUE(host_use(reading("cpu0 0 0 0 0\n"), reading("cpu0 1 0 0 0\n", kSecond / 100)).cores.empty());
  EXPECT_FALSE(host_use(reading("cpu0 0 0 0 0\n"), reading("cpu0 10 0 0 0\n", kSecond / 10)).cores.empty());
}

TEST(HostUse, CoresWithoutTicksAreOmitted) {  // some sandboxes show zeros
  EXPECT_TRUE(host_use(reading("cpu0 0 0 0 0\n"), reading("cpu0 0 0 0 0\n", kSecond)).cores.empty());
}

TEST(HostUse, UseOfTheProcessIsKnownWithoutProc) {
  const HostReading begin = read_host("/nowhere");
  for (std::uint64_t spin = 0; read_host("/nowhere").at_ns - begin.at_ns < kSecond / 5;) {
    volatile std::uint64_t work = ++spin;
    (void)work;
  }
  const HostUse use = host_use(begin, read_host("/nowhere"));
  EXPECT_TRUE(use.cores.empty());
  EXPECT_FALSE(use.system_switches);
  EXPECT_GT(use.own_cores, 0);
  EXPECT_DOUBLE_EQ(use.stolen_cores(), 0);
}

TEST(HostUse, CpuTimeOfChildrenAndTheirChildrenIsKnown) {
  if (!std::filesystem::exists("/proc/thread-self/children")) {
    GTEST_SKIP() << "this kernel does not list the children of a process";
  }
  const HostReading before = read_host();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile bool on = true; on;) {
      }
    }
    pause();
    _exit(0);
  }
  double cores = 0;
  for (int tries = 0; cores == 0 && tries < 100; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cores = host_use(before, read_host()).children_cores;
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_GT(cores, 0);
  EXPECT_LE(cores, 2);
}

TEST(HostUse, UseIsEmptyForASingleReading) {
  const HostReading now = read_host();
  const HostUse use = host_use(now, now);
  EXPECT_EQ(use.seconds, 0);
  EXPECT_EQ(use.own_cores, 0);
  EXPECT_TRUE(use.cores.empty());
}

}  // namespace
}  // namespace feedrate
