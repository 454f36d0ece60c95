#pragma once
#include <cstddef>

/// What lies between `feedrate` and feedrate_metrics.so, which serves metrics over HTTP. It is loaded when somebody
/// asks for metrics, so that the executable itself needs none of its libraries. Plain C: the two have a C++ library
/// each.
extern "C" {

enum FeedrateMetricKind { kFeedrateCounter, kFeedrateGauge, kFeedrateHistogram };

struct FeedrateMetric {
  FeedrateMetricKind kind;
  const char* name;
  const char* help;
  double value;  ///< of a counter or gauge; of a histogram its sum
  std::size_t buckets = 0;
  const double* bounds = nullptr;              ///< `buckets` - 1: the last has none
  const unsigned long long* counts = nullptr;  ///< each bucket's own
};

/// Asked from the server's threads, one at a time.
struct FeedrateMetricsSource {
  void* self;
  void (*collect)(void* self, void (*add)(void* to, const FeedrateMetric*), void* to);
  /// 0 and a reason, or 1.
  int (*healthy)(void* self, char* reason, std::size_t size);
  const char* label;  ///< of all metrics
  const char* value;
};

/// Serves GET /metrics and GET /healthz at `address` ("9090", "127.0.0.1:9090"). Null, and a reason, when it can't.
void* feedrate_metrics_open(const char* address, const FeedrateMetricsSource*, char* reason, std::size_t size);
void feedrate_metrics_close(void*);

}  // extern "C"
