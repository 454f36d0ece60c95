#pragma once
#include <algorithm>
#include <memory>

#include "variants/feeding/queue.hpp"

namespace feedrate::test {

/// A queue that carries no messages. Its collector returns the given results once, at most `most` at a time.
class GivenQueue final : public Queue {
 public:
  GivenQueue(ConstMessages results, std::size_t most) : results_(results), max_(most) {}
  std::unique_ptr<Producer> producer(unsigned) override { return std::make_unique<In>(); }
  std::unique_ptr<Collector> collector(unsigned) override { return std::make_unique<Out>(results_, max_); }
  void start() override {}
  void stop(bool) override {}
  Cost cost() const override { return {}; }

 private:
  struct In final : Producer {
    Messages reserve(std::size_t) override { return {}; }
    void publish(std::size_t) override {}
  };
  struct Out final : Collector {
    Out(ConstMessages results, std::size_t most) : rest(results), most(most) {}
    ConstMessages poll(std::size_t n) override { return rest.first(std::min(n, most)); }
    void release(std::size_t n) override { rest = rest.from(n); }
    ConstMessages rest;
    std::size_t most;
  };
  ConstMessages results_;
  std::size_t max_;
};

}  // namespace feedrate::test
