#include "kernels/linear/parts.hpp"

#include "kernels/ladder/gelu.hpp"
#include "kernels/ladder/spread.cuh"

namespace feedrate::ladder {
namespace {

struct AddBiasAndGelu {
  Matrix before, bias, y;
  bool gelu;
  FEEDRATE_HD std::uint64_t count() const { return y.rows * y.columns; }
  FEEDRATE_HD void operator()(std::uint64_t i) const {
    const std::uint64_t row = i / y.columns, column = i % y.columns;
    const float value = before.load(0, row, column) + bias.load(0, 0, column);
    store_element(before.at(0, row, column), before.element, value);
    store_element(y.at(0, row, column), y.element, gelu ? ladder::gelu(value) : value);
  }
};

struct WriteSlope {
  Matrix gradient_y, before, slope;
  bool gelu;
  FEEDRATE_HD std::uint64_t count() const { return slope.rows * slope.columns; }
  FEEDRATE_HD void operator()(std::uint64_t i) const {
    const std::uint64_t row = i / slope.columns, column = i % slope.columns;
    const float gradient = gradient_y.load(0, row, column);
    store_element(slope.at(0, row, column), slope.element,
                  gelu ? gradient * gelu_slope(before.load(0, row, column)) : gradient);
  }
};

struct AddToBias {
  Matrix slope;
  float* sums;
  FEEDRATE_HD std::uint64_t count() const { return slope.rows * slope.columns; }
  FEEDRATE_HD void operator()(std::uint64_t i) const {
    const std::uint64_t row = i / slope.columns, column = i % slope.columns;
    const float value = slope.load(0, row, column);
#ifdef __CUDA_ARCH__
    atomicAdd(sums + column, value);
#else
    sums[column] += value;
#endif
  }
};

struct SumColumn {
  Matrix rows;
  float* sums;
  FEEDRATE_HD std::uint64_t count() const { return rows.columns; }
  FEEDRATE_HD void operator()(std::uint64_t column) const {
    float sum = 0;
    for (std::uint64_t row = 0; row < rows.rows; ++row) sum += rows.load(0, row, column);
    sums[column] = sum;
  }
};

struct AddParts {
  Matrix parts, sum;
  FEEDRATE_HD std::uint64_t count() const { return sum.rows * sum.columns; }
  FEEDRATE_HD void operator()(std::uint64_t i) const {
    const std::uint64_t row = i / sum.columns, column = i % sum.columns;
    float all = 0;
    for (std::uint64_t part = 0; part < parts.batch; ++part) all += parts.load(part, row, column);
    store_element(sum.at(0, row, column), sum.element, all);
  }
};

float* sums_of(const LinearData& data) { return reinterpret_cast<float*>(data.gradient_bias.data); }

}  // namespace

void add_bias_and_gelu(Stream& stream, const LinearShape& shape, const LinearData& data) {
  stream.launch(spread(AddBiasAndGelu{data.before_gelu, data.bias, data.y, shape.gelu}));
}
void write_slope(Stream& stream, const LinearShape& shape, const LinearData& data) {
  stream.launch(spread(WriteSlope{data.gradient_y, data.before_gelu, data.slope, shape.gelu}));
}
void sum_columns_by_atomics(Stream& stream, const LinearShape&, const LinearData& data) {
  stream.fill(data.gradient_bias.data, 0, data.gradient_bias.bytes());
  stream.launch(spread(AddToBias{data.slope, sums_of(data)}));
}
void sum_columns_by_threads(Stream& stream, const LinearShape&, const LinearData& data) {
  stream.launch(spread(SumColumn{data.slope, sums_of(data)}));
}

void add_parts(Stream& stream, const Matrix& parts, const Matrix& sum) { stream.launch(spread(AddParts{parts, sum})); }

}  // namespace feedrate::ladder
