#include "kernels/ladder/python_peer.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "common/error.hpp"

namespace feedrate::ladder {
namespace {

/// The system's Python, if there is one: others often lack the shared library.
const bool chosen = [] {
  if (std::filesystem::exists("/usr/bin/python3")) setenv("FEEDRATE_PEERS_PYTHON", "/usr/bin/python3", 0);
  return true;
}();

/// Why this machine has no Python that can be used; empty if it has one.
std::string why_no_python() {
  try {
    const std::string missing = PythonPeer::missing("json");
    return missing.starts_with("Python cannot be used") ? missing : "";
  } catch (const BadInput& rejected) {
    return rejected.what();
  }
}

/// The message of the Failure that creating a peer throws.
std::string failure_of(const std::string& module, const std::string& arguments) {
  try {
    const PythonPeer peer(module, arguments);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(PythonPeer, MissingPackageIsNamedWithWhatToDo) {
  ASSERT_TRUE(chosen);
  if (const std::string why = why_no_python(); !why.empty()) GTEST_SKIP() << why;
  EXPECT_EQ(PythonPeer::missing("json"), "");
  const std::string missing = PythonPeer::missing("no_such_package");
  EXPECT_NE(missing.find("has no package no_such_package: install it"), missing.npos) << missing;
  EXPECT_NE(missing.find("FEEDRATE_PEERS_PYTHON"), missing.npos) << missing;
}

TEST(PythonPeer, ErrorsOfPythonAreReported) {
  if (const std::string why = why_no_python(); !why.empty()) GTEST_SKIP() << why;
  EXPECT_EQ(failure_of("python_peer", "1, 2"), "Python: AttributeError: module 'python_peer' has no attribute 'Peer'");
  EXPECT_EQ(failure_of("python_peer", "1 +").substr(0, 20), "Python: SyntaxError:");
  EXPECT_EQ(failure_of("other", ""), "this build has no Python module other");
}

TEST(PythonPeer, MatrixIsPassedWithItsPlace) {
  const Matrix matrix{reinterpret_cast<std::byte*>(4096), Element::bf16, 3, 5, 8, 2};
  EXPECT_EQ(python_text(matrix), "Memory(4096, 'bf16', 2, 3, 5, 8)");
}

}  // namespace
}  // namespace feedrate::ladder
