#include "kernels/ladder/element.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "features.hpp"
#ifdef FEEDRATE_WITH_CUDA
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#endif

namespace feedrate::ladder {
namespace {

float through(float value, Element element) {
  std::byte bytes[4];
  store_element(bytes, element, value);
  return load_element(bytes, element);
}

TEST(Element, KnownValuesAreRoundedToTheNearestNumber) {
  EXPECT_EQ(through(1.0f, Element::bf16), 1.0f);
  EXPECT_EQ(through(257.0f, Element::bf16), 256.0f) << "ties go to the even number";
  EXPECT_EQ(through(259.0f, Element::bf16), 260.0f);
  EXPECT_EQ(through(65504.0f, Element::fp16), 65504.0f);
  EXPECT_TRUE(std::isinf(through(65520.0f, Element::fp16)));
  EXPECT_EQ(through(0x1p-24f, Element::fp16), 0x1p-24f) << "the smallest number";
  EXPECT_EQ(through(448.0f, Element::fp8), 448.0f);
  EXPECT_EQ(through(1e9f, Element::fp8), 448.0f) << "too large numbers become the largest one";
  EXPECT_EQ(through(0x1p-9f, Element::fp8), 0x1p-9f) << "the smallest number";
  EXPECT_EQ(through(-1.5f, Element::fp8), -1.5f);
  EXPECT_TRUE(std::isnan(through(std::numeric_limits<float>::quiet_NaN(), Element::fp8)));
  EXPECT_TRUE(std::isnan(through(std::numeric_limits<float>::quiet_NaN(), Element::bf16)));
}

TEST(Element, EveryPatternOfBitsSurvives) {
  for (const Element element : {Element::bf16, Element::fp16, Element::fp8}) {
    for (std::uint32_t bits = 0; bits < 1u << (8 * bytes_of(element)); ++bits) {
      std::byte bytes[4];
      std::memcpy(bytes, &bits, sizeof bits);
      const float value = load_element(bytes, element);
      const bool tiny = element == Element::bf16 && std::fabs(value) < std::numeric_limits<float>::min();
      if (std::isnan(value) || tiny) continue;
      std::byte again[4] = {};
      store_element(again, element, value);
      ASSERT_EQ(std::memcmp(bytes, again, bytes_of(element)), 0) << text_of(element) << " " << bits;
    }
  }
}

#ifdef FEEDRATE_WITH_CUDA
TEST(Element, RoundingAgreesWithCuda) {
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const float value = float_of(static_cast<std::uint32_t>(i * 21'473u + 11));  // all exponents
    if (std::isnan(value) || std::fabs(value) < std::numeric_limits<float>::min()) continue;
    ASSERT_EQ(through(value, Element::bf16), __bfloat162float(__float2bfloat16(value))) << value;
    ASSERT_EQ(through(value, Element::fp16), __half2float(__float2half(value))) << value;
    if (!std::isinf(value)) {
      ASSERT_EQ(through(value, Element::fp8), static_cast<float>(__nv_fp8_e4m3(value))) << value;
    }
  }
}
#endif

}  // namespace
}  // namespace feedrate::ladder
