#include "tests/support/cells.hpp"

#include "tests/support/points.hpp"
#include "variants/feeding/queue.hpp"
#include "variants/feeding/transfer.hpp"

namespace feedrate::test {

void run_case(Session& session, const Case& one) {
  if (Queues::instance().get("--queue", one.point.queue).uses_transfer) {
    const auto& transfer = Transfers::instance().get("--transfer", one.point.transfer);
    if (transfer.why_unsupported) {
      if (const auto reason = transfer.why_unsupported(describe_device(one.point.device)); !reason.empty())
        GTEST_SKIP() << reason;
    }
  }
  expect_clean(run_cell(session, one.point));
}

std::vector<Case> cases_for(const std::string& queue, const std::string& device) {
  const bool redis = !Queues::instance().get("--queue", queue).service.empty();
  const bool transfers = Queues::instance().get("--queue", queue).uses_transfer;
  Point base;
  base.queue = queue;
  base.device = device;
  const std::uint64_t messages = redis ? 4'000 : 20'000;
  std::vector<Case> cases;
  const auto add = [&](std::string name, std::uint64_t n, auto&& change) {
    Case one{std::move(name), base, n};
    change(one.point);
    cases.push_back(std::move(one));
  };
  const auto per_transfer = [&](const std::string& name, std::uint64_t n, auto&& change) {
    if (!transfers) return add(name, n, change);
    for (const auto& [transfer, entry] : Transfers::instance().entries()) {
      // A transfer treats the batches of all brokers alike. For queues with a server, one transfer of each kind is
      // therefore enough.
      if (redis && transfer != "pageable" && transfer != "pinned" && transfer != "mapped" && transfer != "gather")
        continue;
      add(name + "_" + transfer, n, [&, &transfer = transfer](Point& p) {
        change(p);
        p.transfer = transfer;
      });
    }
  };
  per_transfer("standard", messages, [](Point&) {});
  per_transfer("lone", messages / 10, [](Point& p) { p.window = 1; });
  per_transfer("large", 200, [](Point& p) {
    p.payload = 256 << 10;
    p.window = 16;
    p.batch = 4;
  });
  for (const std::size_t payload : {0, 1, 3, 15, 17, 112, 129, 1000, 2033, 4099}) {
    add("payload_" + std::to_string(payload), messages / 4, [=](Point& p) {
      p.payload = payload;
      p.window = 64;
      p.batch = 7;
    });
  }
  for (const std::size_t payload : {0, 5, 112, 128, 129}) {  // sizes around the limits of gpu_ring's flagged rings
    add("lone_payload_" + std::to_string(payload), messages / 10, [=](Point& p) {
      p.payload = payload;
      p.window = 1;
    });
  }
  add("single_messages_in_a_window", messages / 4, [](Point& p) { p.batch = 1; });
  add("odd_batches", messages, [](Point& p) {
    p.window = 100;
    p.batch = 33;
    test::set(p, "streams", 3);
  });
  add("vecadd", messages / 4, [](Point& p) {
    p.workload = "vecadd";
    p.payload = 4096;
  });
  add("vecadd_small", messages, [](Point& p) {
    p.workload = "vecadd";
    p.payload = 32;
  });
  add("fma_chain", messages / 10, [](Point& p) {
    p.workload = "fma_chain";
    p.payload = 1004;
    test::set(p, "flops-per-byte", 4);
  });
  add("three_producers", messages, [](Point& p) { p.producers = 3; });
  add("small_capacity", messages, [](Point& p) {  // full most of the time: rejects messages, but loses none
    p.capacity = 8;
    p.window = 128;
    p.batch = 16;
  });
  add("block_32", messages / 4, [](Point& p) { p.block = 32; });
  add("block_1024", messages / 4, [](Point& p) { p.block = 1024; });
  if (transfers) {
    for (const char* chain : {"copies", "mapped"}) {
      add(std::string("graph_of_") + chain, messages / 2, [=](Point& p) {
        p.transfer = "graph";
        test::set(p, "chain", chain);
        test::set(p, "coalesce", 5);
        p.producers = 2;
        p.batch = 7;
      });
    }
    for (const char* pieces : {"call", "staging"}) {
      add(std::string("batched_copy_by_") + pieces, messages / 2, [=](Point& p) {
        p.transfer = "batched_copy";
        test::set(p, "pieces", pieces);
        test::set(p, "coalesce", 3);
        p.producers = 2;
        p.batch = 5;
      });
    }
    for (const std::size_t payload : {0u, 3u, 1000u, 4099u}) {
      add("gather_" + std::to_string(payload), messages / 4, [=](Point& p) {
        p.transfer = "gather";
        p.payload = payload;
        p.producers = 2;
        p.batch = 9;
      });
    }
    add("batches_held_back", messages / 4, [](Point& p) {
      p.batch = 16;
      p.window = 40;
      p.batch_timeout_us = 100;
    });
    add("two_workers", messages, [](Point& p) {
      p.producers = 2;
      p.workers = 2;
    });
  }
  if (redis) {
    add("pack_64", messages * 4, [](Point& p) {
      test::set(p, "pack", 64);
      p.window = 1024;
      p.batch = 256;
    });
    add("pack_uneven", messages, [](Point& p) {
      test::set(p, "pack", 5);
      p.batch = 12;
      p.payload = 7;
    });
  }
  if (queue == "gpu_ring") {
    add("eight_lanes", messages, [](Point& p) { test::set(p, "lanes", 8); });
    add("lanes_of_producers", messages, [](Point& p) {
      p.producers = 2;
      test::set(p, "lanes", 6);
    });
    for (const char* notify : {"counter", "flags"}) {
      for (const char* results : {"in_order", "as_finished"}) {
        for (const unsigned pollers : {1u, 4u}) {
          for (const unsigned mirrors : {1u, 4u}) {
            if (mirrors > (notify[0] == 'f' ? pollers : 1)) continue;
            std::string name = std::string(notify) + "_" + results + "_" + std::to_string(pollers) + "_pollers_" +
                               std::to_string(mirrors) + "_mirrors";
            add(std::move(name), messages / 2, [=](Point& p) {
              test::set(p, "notify", notify);
              test::set(p, "results", results);
              test::set(p, "pollers", pollers);
              test::set(p, "mirrors", mirrors);
              p.payload = 100;
              p.batch = 8;
            });
          }
        }
      }
    }
    add("sixteen_pollers", messages / 4, [](Point& p) {
      test::set(p, "pollers", 16);
      p.block = 512;
      p.batch = 3;
    });
    add("two_pollers_of_a_warp", messages / 4, [](Point& p) {
      test::set(p, "pollers", 2);
      p.block = 64;
      test::set(p, "notify", "flags");
    });
    for (const char* granularity : {"thread", "warp", "block"}) {
      for (const unsigned pollers : {1u, 2u}) {
        add(std::string("by_") + granularity + "_" + std::to_string(pollers) + "_pollers", messages / 2, [=](Point& p) {
          test::set(p, "granularity", granularity);
          test::set(p, "pollers", pollers);
          p.payload = 1000;
        });
      }
    }
    for (const char* slots : {"pinned", "vram"}) {
      for (const std::size_t payload : {64u, 65536u}) {
        add(std::string(slots) + "_slots_" + std::to_string(payload), payload > 64 ? 500 : messages, [=](Point& p) {
          test::set(p, "slots", slots);
          p.payload = payload;
          p.window = payload > 64 ? 32 : 256;
          p.batch = 8;
          test::set(p, "pollers", 2);
        });
      }
    }
    add("vram_small_capacity", messages / 4, [](Point& p) {
      test::set(p, "slots", "vram");
      p.capacity = 8;
      p.batch = 3;
    });
    for (const char* idle : {"backoff", "park"}) {
      for (const char* notify : {"counter", "flags"}) {
        add(std::string("idle_") + idle + "_" + notify, messages / 4, [=](Point& p) {
          test::set(p, "ring-idle", idle);
          test::set(p, "notify", notify);
          test::set(p, "pollers", 2);
          p.window = 8;
          p.batch = 2;
        });
      }
    }
    for (const char* notify : {"counter", "flags"}) {  // slots longer than their messages
      add(std::string("slack_slots_") + notify, messages / 2, [=](Point& p) {
        test::set(p, "notify", notify);
        test::set(p, "slot-bytes", 500);
        p.payload = 33;
        test::set(p, "pollers", 2);
      });
    }
    add("flags_small_capacity_as_finished", messages / 4, [](Point& p) {
      test::set(p, "notify", "flags");
      test::set(p, "results", "as_finished");
      test::set(p, "pollers", 3);
      test::set(p, "mirrors", 3);
      p.block = 192;
      p.capacity = 4;
      p.batch = 4;
    });
  }
  return cases;
}

}  // namespace feedrate::test
