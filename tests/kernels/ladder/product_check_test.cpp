#include "kernels/ladder/product_check.hpp"

#include <gtest/gtest.h>

#include "tests/support/ladder_checks.hpp"

namespace feedrate::ladder {
namespace {

/// A right product on the CPU device, to which faults are added.
class ProductCheck : public testing::Test {
 protected:
  static constexpr std::uint64_t kM = 40, kN = 50, kK = 60;
  ProductCheck() {
    for (const MatrixMemory* each : {&left, &right, &result}) each->poison(*stream);
    fill(*stream, left.matrix(), Inputs::normal, 1);
    fill(*stream, right.matrix(), Inputs::normal, 2);
    stream->synchronize();
    for (std::uint64_t row = 0; row < kM; ++row) {
      for (std::uint64_t column = 0; column < kN; ++column) {
        float sum = 0;
        for (std::uint64_t k = 0; k < kK; ++k) {
          sum += left.matrix().load(0, row, k) * right.matrix().load(0, k, column);
        }
        store_element(result.matrix().at(0, row, column), Element::fp32, sum);
      }
    }
  }
  ProductVerdict check(std::uint64_t samples) {
    const Product product{{left.matrix()}, {right.matrix()}, result.matrix(), kK};
    return check_product(*device, *stream, product, {.sum = 0x1p-24}, samples, 3);
  }
  float& element(std::uint64_t row, std::uint64_t column) {
    return *reinterpret_cast<float*>(result.matrix().at(0, row, column));
  }
  std::unique_ptr<Device> device = open_cpu_device();
  std::unique_ptr<Stream> stream = device->stream();
  MatrixMemory left{*device, {nullptr, Element::fp32, kM, kK, kK + 4}};
  MatrixMemory right{*device, {nullptr, Element::fp32, kK, kN, kN + 2}};
  MatrixMemory result{*device, {nullptr, Element::fp32, kM, kN, kN + 6}};
};

TEST_F(ProductCheck, RightProductIsAccepted) {
  const ProductVerdict verdict = check(500);
  EXPECT_EQ(verdict.wrong, "");
  EXPECT_GT(verdict.error, 0);
  EXPECT_LT(verdict.error, 1e-6);
  EXPECT_GT(verdict.share, 0);
  EXPECT_LT(verdict.share, 0.5) << "an honest sum needs only part of the tolerance";
}

TEST_F(ProductCheck, WrongCornerIsFoundByItsSample) {
  element(kM - 1, kN - 1) += 0.001f;
  const std::string wrong = check(8).wrong;
  EXPECT_NE(wrong.find("sampled elements are wrong, the first in row 39, column 49"), std::string::npos) << wrong;
}

TEST_F(ProductCheck, WrongElementThatIsNotSampledIsFoundByItsRow) {
  element(17, 23) += 1;
  const std::string wrong = check(8).wrong;
  EXPECT_NE(wrong.find("1 of 40 rows are wrong, the first in row 17"), std::string::npos) << wrong;
}

TEST_F(ProductCheck, ElementThatWasNotComputedIsFound) {
  element(30, 10) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(check(8).wrong.find("first in row 30"), std::string::npos);
}

TEST_F(ProductCheck, MissingLastProductOfEachSumIsFound) {
  for (std::uint64_t row = 0; row < kM; ++row) {
    for (std::uint64_t column = 0; column < kN; ++column) {
      element(row, column) -= left.matrix().load(0, row, kK - 1) * right.matrix().load(0, kK - 1, column);
    }
  }
  EXPECT_NE(check(64).wrong.find("sampled elements are wrong"), std::string::npos);
}

TEST_F(ProductCheck, WritesOutsideTheResultAreCounted) {
  const Buffer word = device->allocate_host(sizeof(std::uint64_t), HostMemory::pinned);
  auto* const changed = reinterpret_cast<std::uint64_t*>(word.data());
  const auto count = [&] {
    *changed = 0;
    count_changed(*stream, result, changed);
    stream->synchronize();
    return *changed;
  };
  EXPECT_EQ(count(), 0u);
  element(3, kN) = 0;  // between two rows
  EXPECT_EQ(count(), 4u);
  result.matrix().data[-1] = std::byte{0};
  result.matrix().data[result.matrix().bytes()] = std::byte{0};
  EXPECT_EQ(count(), 6u);
}

}  // namespace
}  // namespace feedrate::ladder
