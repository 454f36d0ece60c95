#pragma once
#include <cstddef>

/// Interface between `feedrate` and feedrate_metrics.so, which serves metrics over HTTP. The module is loaded only if
/// metrics are requested, so the executable itself does not need its libraries. The interface is plain C because the
/// two use different C++ libraries.
extern "C" {

enum FeedrateMetricKind { kFeedrateCounter, kFeedrateGauge, kFeedrateHistogram };

struct FeedrateMetric {
  FeedrateMetricKind kind;
  const char* name;
  const char* help;
  double value;  ///< value of a counter or gauge; sum of a histogram
  std::size_t buckets = 0;
  const double* bounds = nullptr;              ///< upper bounds, `buckets` - 1 of them: the last bucket has none
  const unsigned long long* counts = nullptr;  ///< count per bucket, not cumulative
};

/// Callbacks, called from the server's threads, one at a time.
struct FeedrateMetricsSource {
  void* self;
  void (*collect)(void* self, void (*add)(void* to, const FeedrateMetric*), void* to);
  /// Returns 1 if healthy; otherwise 0, with a reason.
  int (*healthy)(void* self, char* reason, std::size_t size);
  const char* label;  ///< attached to all metrics
  const char* value;
};

/// Serves GET /metrics and GET /healthz at `address` ("9090", "127.0.0.1:9090"). Returns null, with a reason, on
/// failure.
void* feedrate_metrics_open(const char* address, const FeedrateMetricsSource*, char* reason, std::size_t size);
void feedrate_metrics_close(void*);

}  // extern "C"
