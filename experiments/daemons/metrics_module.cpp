#include "experiments/daemons/metrics_module.hpp"

#include <CivetServer.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

void respond(mg_connection* connection, int code, const char* text, const char* type, const std::string& body) {
  mg_printf(connection, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", code,
            text, type, body.size());
  mg_write(connection, body.data(), body.size());
}

MetricFamily family_of(const FeedrateMetric& metric, const prometheus::ClientMetric::Label& label) {
  MetricFamily family;
  family.name = metric.name;
  family.help = metric.help;
  ClientMetric client;
  client.label.push_back(label);
  switch (metric.kind) {
    case kFeedrateCounter:
      family.type = prometheus::MetricType::Counter;
      client.counter.value = metric.value;
      break;
    case kFeedrateGauge:
      family.type = prometheus::MetricType::Gauge;
      client.gauge.value = metric.value;
      break;
    case kFeedrateHistogram:
      family.type = prometheus::MetricType::Histogram;
      client.histogram.sample_sum = metric.value;
      for (std::size_t i = 0; i < metric.buckets; ++i) {
        client.histogram.sample_count += metric.counts[i];
        if (i + 1 < metric.buckets) {
          client.histogram.bucket.push_back({client.histogram.sample_count, metric.bounds[i]});
        }
      }
      break;
  }
  family.metric.push_back(std::move(client));
  return family;
}

/// The endpoint and its two pages.
class Server {
 public:
  Server(const std::string& address, const FeedrateMetricsSource& source)
      : source_(source),
        label_{source.label, source.value},
        server_(std::vector<std::string>{"listening_ports", address, "num_threads", "2"}) {
    server_.addHandler("/metrics", metrics_);
    server_.addHandler("/healthz", health_);
  }

 private:
  struct Metrics : CivetHandler {
    explicit Metrics(Server& server) : server(server) {}
    bool handleGet(CivetServer*, mg_connection* connection) override {
      struct To {
        std::vector<MetricFamily> families;
        const prometheus::ClientMetric::Label& label;
      } to{{}, server.label_};
      {
        const std::lock_guard lock(server.mutex_);
        server.source_.collect(
            server.source_.self,
            [](void* to, const FeedrateMetric* metric) {
              auto& all = *static_cast<To*>(to);
              all.families.push_back(family_of(*metric, all.label));
            },
            &to);
      }
      respond(connection, 200, "OK", "text/plain; version=0.0.4; charset=utf-8",
              prometheus::TextSerializer().Serialize(to.families));
      return true;
    }
    Server& server;
  };
  struct Health : CivetHandler {
    explicit Health(Server& server) : server(server) {}
    bool handleGet(CivetServer*, mg_connection* connection) override {
      std::array<char, 256> reason{};
      const bool healthy = server.source_.healthy(server.source_.self, reason.data(), reason.size()) != 0;
      respond(connection, healthy ? 200 : 503, healthy ? "OK" : "Service Unavailable", "text/plain",
              healthy ? "ok\n" : std::string(reason.data()) + "\n");
      return true;
    }
    Server& server;
  };

  FeedrateMetricsSource source_;
  prometheus::ClientMetric::Label label_;
  std::mutex mutex_;
  Metrics metrics_{*this};
  Health health_{*this};
  CivetServer server_;  // last: its threads end before the objects that they use are destroyed
};

}  // namespace

extern "C" {

void* feedrate_metrics_open(const char* address, const FeedrateMetricsSource* source, char* reason, std::size_t size) {
  try {
    return std::make_unique<Server>(address, *source).release();
  } catch (const std::exception& error) {
    std::snprintf(reason, size, "%s", error.what());
    return nullptr;
  }
}

void feedrate_metrics_close(void* server) { delete static_cast<Server*>(server); }

}  // extern "C"
