#include "experiments/kernels/counters.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include "common/error.hpp"
#include "features.hpp"

#if defined(FEEDRATE_CUPTI) && __has_include(<cupti_range_profiler.h>)

#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "common/device/cuda_check.hpp"
#include "experiments/harness/timeline/cupti/library.hpp"

namespace feedrate::kernels {
namespace {

/// A counter's name in rows and in CUPTI, and the bytes that one count stands for.
struct Metric {
  const char *name, *counter;
  double bytes;
};
constexpr std::array kMetrics{
    Metric{"dram_read_bytes", "dram__bytes_read.sum", 1}, Metric{"dram_write_bytes", "dram__bytes_write.sum", 1},
    Metric{"sm_l2_bytes", "lts__t_sectors_srcunit_tex.sum", 32}, Metric{"l2_bytes", "lts__t_bytes.sum", 1}};
constexpr std::size_t kMostPasses = 16;

/// The range profiler's functions in CUPTI, which take one struct each.
struct Profiler {
  void* library = cupti().library;
  Function<decltype(cuptiProfilerInitialize)> initialize{library, "cuptiProfilerInitialize"};
  Function<decltype(cuptiDeviceGetChipName)> chip_name{library, "cuptiDeviceGetChipName"};
  Function<decltype(cuptiProfilerHostInitialize)> open_host{library, "cuptiProfilerHostInitialize"};
  Function<decltype(cuptiProfilerHostDeinitialize)> close_host{library, "cuptiProfilerHostDeinitialize"};
  Function<decltype(cuptiProfilerHostConfigAddMetrics)> add_metrics{library, "cuptiProfilerHostConfigAddMetrics"};
  Function<decltype(cuptiProfilerHostGetConfigImageSize)> config_size{library, "cuptiProfilerHostGetConfigImageSize"};
  Function<decltype(cuptiProfilerHostGetConfigImage)> config{library, "cuptiProfilerHostGetConfigImage"};
  Function<decltype(cuptiProfilerHostEvaluateToGpuValues)> evaluate{library, "cuptiProfilerHostEvaluateToGpuValues"};
  Function<decltype(cuptiRangeProfilerEnable)> enable{library, "cuptiRangeProfilerEnable"};
  Function<decltype(cuptiRangeProfilerDisable)> disable{library, "cuptiRangeProfilerDisable"};
  Function<decltype(cuptiRangeProfilerGetCounterDataSize)> data_size{library, "cuptiRangeProfilerGetCounterDataSize"};
  Function<decltype(cuptiRangeProfilerCounterDataImageInitialize)> clear{
      library, "cuptiRangeProfilerCounterDataImageInitialize"};
  Function<decltype(cuptiRangeProfilerSetConfig)> set_config{library, "cuptiRangeProfilerSetConfig"};
  Function<decltype(cuptiRangeProfilerStart)> start{library, "cuptiRangeProfilerStart"};
  Function<decltype(cuptiRangeProfilerStop)> stop{library, "cuptiRangeProfilerStop"};
  Function<decltype(cuptiRangeProfilerPushRange)> push{library, "cuptiRangeProfilerPushRange"};
  Function<decltype(cuptiRangeProfilerPopRange)> pop{library, "cuptiRangeProfilerPopRange"};
  Function<decltype(cuptiRangeProfilerDecodeData)> decode{library, "cuptiRangeProfilerDecodeData"};

  static const Profiler& instance() {
    static const Profiler profiler;
    return profiler;
  }
  bool complete() const {
    const auto all = [](const auto&... functions) { return (functions.there() && ...); };
    return all(initialize, chip_name, open_host, close_host, add_metrics, config_size, config, evaluate, enable,
               disable, data_size, clear, set_config, start, stop, push, pop, decode);
  }
};

/// A struct of parameters with its size, by which CUPTI recognises its version.
template <class Parameters>
Parameters sized(std::size_t bytes) {
  Parameters parameters{};
  parameters.structSize = bytes;
  return parameters;
}

CUcontext current_context() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &entry, 4000, cudaEnableDefault, &found),
        "looking up cuCtxGetCurrent");
  CUcontext context = nullptr;
  if (found != cudaDriverEntryPointSuccess ||
      reinterpret_cast<decltype(&cuCtxGetCurrent)>(entry)(&context) != CUDA_SUCCESS || context == nullptr) {
    throw Failure("there is no current context");
  }
  return context;
}

/// Configures and evaluates metrics for this GPU.
class Host {
 public:
  Host() {
    auto initialize = sized<CUpti_Profiler_Initialize_Params>(CUpti_Profiler_Initialize_Params_STRUCT_SIZE);
    profiler_.initialize(&initialize);
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    auto chip = sized<CUpti_Device_GetChipName_Params>(CUpti_Device_GetChipName_Params_STRUCT_SIZE);
    chip.deviceIndex = static_cast<std::size_t>(device);
    profiler_.chip_name(&chip);
    auto open = sized<CUpti_Profiler_Host_Initialize_Params>(CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE);
    open.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    open.pChipName = chip.pChipName;
    profiler_.open_host(&open);
    host_ = open.pHostObject;
  }
  ~Host() {
    auto close = sized<CUpti_Profiler_Host_Deinitialize_Params>(CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE);
    close.pHostObject = host_;
    profiler_.close_host.result(&close);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  std::vector<std::uint8_t> config() {
    auto metrics =
        sized<CUpti_Profiler_Host_ConfigAddMetrics_Params>(CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE);
    metrics.pHostObject = host_;
    metrics.ppMetricNames = names_.data();
    metrics.numMetrics = names_.size();
    profiler_.add_metrics(&metrics);
    auto size =
        sized<CUpti_Profiler_Host_GetConfigImageSize_Params>(CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE);
    size.pHostObject = host_;
    profiler_.config_size(&size);
    std::vector<std::uint8_t> image(size.configImageSize);
    auto get = sized<CUpti_Profiler_Host_GetConfigImage_Params>(CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE);
    get.pHostObject = host_;
    get.configImageSize = image.size();
    get.pConfigImage = image.data();
    profiler_.config(&get);
    return image;
  }
  std::array<double, kMetrics.size()> values(const std::vector<std::uint8_t>& data) {
    std::array<double, kMetrics.size()> values{};
    auto evaluate = sized<CUpti_Profiler_Host_EvaluateToGpuValues_Params>(
        CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE);
    evaluate.pHostObject = host_;
    evaluate.pCounterDataImage = data.data();
    evaluate.counterDataImageSize = data.size();
    evaluate.ppMetricNames = names_.data();
    evaluate.numMetrics = names_.size();
    evaluate.pMetricValues = values.data();
    profiler_.evaluate(&evaluate);
    return values;
  }
  const char** names() { return names_.data(); }

 private:
  const Profiler& profiler_ = Profiler::instance();
  std::array<const char*, kMetrics.size()> names_ = [] {
    std::array<const char*, kMetrics.size()> names{};
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kMetrics[i].counter;
    return names;
  }();
  CUpti_Profiler_Host_Object* host_ = nullptr;
};

/// The profiler, enabled for the current context as long as this object lives.
class Range {
 public:
  Range() {
    auto enable = sized<CUpti_RangeProfiler_Enable_Params>(CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE);
    enable.ctx = current_context();
    profiler_.enable(&enable);
    range_ = enable.pRangeProfilerObject;
  }
  ~Range() {
    auto disable = sized<CUpti_RangeProfiler_Disable_Params>(CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE);
    disable.pRangeProfilerObject = range_;
    profiler_.disable.result(&disable);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  /// Runs the kernel as often as the counters need passes, and returns the image of the counters' data.
  std::vector<std::uint8_t> read(Host& host, const std::function<void()>& run) {
    const std::vector<std::uint8_t> config = host.config();
    auto size =
        sized<CUpti_RangeProfiler_GetCounterDataSize_Params>(CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE);
    size.pRangeProfilerObject = range_;
    size.pMetricNames = host.names();
    size.numMetrics = kMetrics.size();
    size.maxNumOfRanges = 1;
    size.maxNumRangeTreeNodes = 1;
    profiler_.data_size(&size);
    std::vector<std::uint8_t> data(size.counterDataSize);
    auto clear = sized<CUpti_RangeProfiler_CounterDataImage_Initialize_Params>(
        CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE);
    clear.pRangeProfilerObject = range_;
    clear.counterDataSize = data.size();
    clear.pCounterData = data.data();
    profiler_.clear(&clear);
    auto set = sized<CUpti_RangeProfiler_SetConfig_Params>(CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE);
    set.pRangeProfilerObject = range_;
    set.configSize = config.size();
    set.pConfig = config.data();
    set.counterDataImageSize = data.size();
    set.pCounterDataImage = data.data();
    set.range = CUPTI_UserRange;
    set.replayMode = CUPTI_UserReplay;
    set.maxRangesPerPass = 1;
    set.numNestingLevels = 1;
    set.minNestingLevel = 1;
    set.targetNestingLevel = 1;
    profiler_.set_config(&set);
    bool complete = false;
    for (std::size_t turn = 0; !complete; ++turn) {
      if (turn == kMostPasses) throw Failure("the counters need too many passes");
      complete = pass(run);
    }
    auto decode = sized<CUpti_RangeProfiler_DecodeData_Params>(CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE);
    decode.pRangeProfilerObject = range_;
    profiler_.decode(&decode);
    if (decode.numOfRangeDropped != 0) throw Failure("the profiler dropped the counters");
    return data;
  }

 private:
  /// One pass; ends the range and stops the profiler even if `run` fails, so that it does not slow what follows.
  /// Returns whether it was the last pass.
  bool pass(const std::function<void()>& run) {
    auto start = sized<CUpti_RangeProfiler_Start_Params>(CUpti_RangeProfiler_Start_Params_STRUCT_SIZE);
    start.pRangeProfilerObject = range_;
    profiler_.start(&start);
    auto push = sized<CUpti_RangeProfiler_PushRange_Params>(CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE);
    push.pRangeProfilerObject = range_;
    push.pRangeName = "kernel";
    auto pop = sized<CUpti_RangeProfiler_PopRange_Params>(CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE);
    pop.pRangeProfilerObject = range_;
    auto stop = sized<CUpti_RangeProfiler_Stop_Params>(CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE);
    stop.pRangeProfilerObject = range_;
    try {
      profiler_.push(&push);
      run();
    } catch (...) {
      profiler_.pop.result(&pop);
      profiler_.stop.result(&stop);
      throw;
    }
    profiler_.pop(&pop);
    profiler_.stop(&stop);
    return stop.isAllPassSubmitted != 0;
  }

  const Profiler& profiler_ = Profiler::instance();
  CUpti_RangeProfiler_Object* range_ = nullptr;
};

}  // namespace

std::map<std::string, double> read_counters(const std::function<void()>& run) {
  if (!Profiler::instance().complete()) throw Failure("CUPTI is missing, or older than 12.6");
  Host host;
  const std::vector<std::uint8_t> data = Range().read(host, run);
  const auto values = host.values(data);
  std::map<std::string, double> read;
  for (std::size_t i = 0; i < kMetrics.size(); ++i) read[kMetrics[i].name] = kMetrics[i].bytes * values[i];
  return read;
}

}  // namespace feedrate::kernels

#else

namespace feedrate::kernels {

std::map<std::string, double> read_counters(const std::function<void()>&) {
  throw Failure("built without CUPTI's range profiler");
}

}  // namespace feedrate::kernels

#endif
