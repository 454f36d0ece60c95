#include "common/redis/cluster.hpp"

#include <gtest/gtest.h>

#include "common/redis/connection.hpp"
#include "variants/feeding/queues/redis/partitions.hpp"

namespace feedrate::redis {
namespace {

TEST(RedisCluster, SlotsMatchTheSpecification) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3u) << "the specification's own example";
  EXPECT_EQ(slot_of("foo"), 12182u) << "the answer of CLUSTER KEYSLOT";
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("{user1000}.followers"));
  EXPECT_EQ(slot_of("foo{bar}{zap}"), slot_of("bar"));
  EXPECT_NE(slot_of("foo{}{bar}"), slot_of("bar")) << "an empty tag does not count as a tag";
}

TEST(RedisCluster, UrlMayNameSeveralServers) {
  EXPECT_EQ(servers_of("redis://u:p@a:1,b,c:3/2"),
            (std::vector<std::string>{"redis://u:p@a:1/2", "redis://u:p@b/2", "redis://u:p@c:3/2"}));
  EXPECT_EQ(servers_of("redis://a"), std::vector<std::string>{"redis://a"});
  EXPECT_EQ(servers_of("unix:///a,b"), std::vector<std::string>{"unix:///a,b"});
  EXPECT_EQ(with_server("redis://u:p@a:1/2", "10.0.0.1", 7), "redis://u:p@10.0.0.1:7/2");
  EXPECT_EQ(with_server("redis://a:1", "", 7), "redis://a:7") << "a server that does not know its own name";
}

TEST(RedisPartitions, EachPartitionHasItsOwnTag) {
  using redis_queue::prefix_of;
  EXPECT_EQ(prefix_of("jobs", 0, 1), "jobs");
  EXPECT_EQ(prefix_of("jobs", 2, 3), "jobs:{jobs.2}");
  EXPECT_EQ(prefix_of("feedrate:{bench-1}", 2, 3), "feedrate:{bench-1.2}");
}

TEST(RedisPartitions, EveryPartitionHasAWorkerAndEveryWorkerAPartition) {
  for (unsigned workers = 1; workers < 9; ++workers) {
    for (unsigned partitions = 1; partitions < 9; ++partitions) {
      std::vector<unsigned> times(partitions);
      for (unsigned worker = 0; worker < workers; ++worker) {
        const auto mine = redis_queue::served_by(worker, workers, partitions);
        EXPECT_FALSE(mine.empty());
        for (const unsigned i : mine) ++times.at(i);
      }
      for (const unsigned n : times) EXPECT_GE(n, 1u) << workers << " workers, " << partitions << " partitions";
    }
  }
}

/// Hands out numbered batches and expects them back in order.
class Counting final : public redis_queue::PartBroker {
 public:
  explicit Counting(std::uint64_t batches) : batches_(batches) {}
  std::optional<Batch> fetch() override {
    if (given_ == batches_) return std::nullopt;
    Batch batch{};
    batch.tag = given_++;
    return batch;
  }
  void complete(const Batch& batch) override { EXPECT_EQ(batch.tag, taken_++); }
  bool finish() override { return taken_ == batches_; }
  redis_queue::Suspects suspects() const override { return redis_queue::Suspects::none; }
  bool idle() const override { return given_ == taken_; }

 private:
  std::uint64_t batches_, given_ = 0, taken_ = 0;
};

TEST(RedisPartitions, BrokerAlternatesBetweenPartitionsAndKeepsTheirOrder) {
  std::vector<std::unique_ptr<redis_queue::PartBroker>> parts;
  for (const std::uint64_t batches : {5, 0, 2}) parts.push_back(std::make_unique<Counting>(batches));
  redis_queue::PartitionedBroker broker(std::move(parts));
  EXPECT_FALSE(broker.finish());
  std::vector<Batch> out;
  while (const auto batch = broker.fetch()) out.push_back(*batch);
  EXPECT_EQ(out.size(), 7u);
  for (const Batch& batch : out) broker.complete(batch);
  EXPECT_TRUE(broker.finish());
}

}  // namespace
}  // namespace feedrate::redis
