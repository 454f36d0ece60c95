// The life cycle of a tensor, without other processes: names, generations, leases, quotas, eviction, expiry.
#include "libraries/tensors/store/table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "libraries/tensors/errors.hpp"
#include "tests/libraries/tensors/sizes.hpp"

namespace feedrate::tensors {
namespace {

/// Returns the message of the `Error` that `call` throws; fails the test if it throws none.
template <class Error, class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}
#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

Layout bytes(std::size_t count) { return {Dtype::u8, {static_cast<std::int64_t>(count)}, {}}; }

class TableTest : public testing::Test {
 protected:
  explicit TableTest(TableLimits limits = {}) : limits_(limits) {}
  std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const auto& about : table_.list("", 1000)) all.push_back(about.name);
    return all;
  }

  std::unique_ptr<ChunkMemory> memory_ = memfd_memory();
  std::uint64_t now_ms_ = 1'000'000;
  std::vector<std::pair<Table::Change, Description>> changes_;
  TableLimits limits_;
  Table table_{*memory_, 64 * kMi, limits_,
               [this](Table::Change change, const Description& about) { changes_.emplace_back(change, about); },
               [this] { return now_ms_; }};
  const ClientId a_ = table_.join("A"), b_ = table_.join("B");
};

TEST_F(TableTest, NameIdentifiesOneTensor) {
  const Description made = table_.create(a_, "weights", bytes(100), {});
  EXPECT_SAYS(error_of<AlreadyExists>([&] { table_.create(b_, "weights", bytes(1), {}); }),
              "'weights' exists (generation 1)");
  const Lease lease = table_.lease(b_, "weights");
  EXPECT_EQ(lease.tensor.generation, made.generation);
  EXPECT_EQ(lease.tensor.leases, 1u);
  EXPECT_SAYS(error_of<NotFound>([&] { table_.stat("weight"); }), "no tensor 'weight'");
}

TEST_F(TableTest, DeletedTensorLastsUntilItsLastLeaseEnds) {
  table_.create(a_, "x", bytes(5 * kMi), {});
  const Lease of_a = table_.lease(a_, "x"), of_b = table_.lease(b_, "x");
  table_.remove("x");
  EXPECT_THROW(table_.lease(a_, "x"), NotFound);
  EXPECT_EQ(table_.deleted(), 1u);
  EXPECT_GT(table_.arena().taken(), 0u);
  table_.release(a_, of_a.id);
  EXPECT_GT(table_.arena().taken(), 0u);
  table_.release(b_, of_b.id);
  EXPECT_EQ(table_.arena().taken(), 0u);
  EXPECT_EQ(table_.deleted(), 0u);
}

TEST_F(TableTest, LaterTensorOfTheSameNameIsDistinct) {
  table_.create(a_, "x", bytes(10), {});
  const Lease old = table_.lease(a_, "x");
  const TensorWords& words = const_cast<Board&>(table_.board()).words(old.tensor.slot);
  table_.remove("x");
  EXPECT_EQ(words.generation, 0u) << "its holders must see that it was deleted";
  const Description later = table_.create(a_, "x", bytes(10), {});
  EXPECT_GT(later.generation, old.tensor.generation);
  EXPECT_NE(later.slot, old.tensor.slot);
  EXPECT_NE(later.place.offset, old.tensor.place.offset);
  EXPECT_SAYS(error_of<NotFound>([&] { table_.remove("x", old.tensor.generation); }), "was deleted");
  EXPECT_THROW(table_.lease(b_, "x", old.tensor.generation), NotFound);
  EXPECT_EQ(table_.lease(b_, "x", later.generation).tensor.generation, later.generation);
}

TEST_F(TableTest, LeasesEndWithTheirClient) {
  table_.create(a_, "kept", bytes(10), {});
  table_.create(a_, "gone", bytes(10), {});
  table_.lease(a_, "kept");
  table_.lease(a_, "gone");
  table_.lease(a_, "gone");
  table_.remove("gone");
  table_.leave(a_);
  EXPECT_EQ(table_.stat("kept").leases, 0u) << "the tensor must outlive its creator";
  EXPECT_EQ(table_.tensors(), 1u);
  EXPECT_EQ(table_.deleted(), 0u);
  EXPECT_EQ(table_.leases(), 0u);
}

TEST_F(TableTest, OnlyTheOwnerCanReleaseALease) {
  table_.create(a_, "x", bytes(10), {});
  const Lease lease = table_.lease(a_, "x");
  EXPECT_THROW(table_.release(b_, lease.id), NotFound);
  table_.release(a_, lease.id);
  EXPECT_THROW(table_.release(a_, lease.id), NotFound);
}

TEST_F(TableTest, EvictionRemovesTheLeastRecentlyUsedUnleasedTensor) {
  for (const char* name : {"held", "pinned", "first", "second", "third"}) table_.create(a_, name, bytes(5 * kMi), {});
  table_.lease(a_, "held");
  table_.set_pinned("pinned", true);
  table_.release(a_, table_.lease(a_, "first").id);  // used more recently than the others
  EXPECT_EQ(table_.evict(1), 6 * kMi);
  EXPECT_EQ(names(), (std::vector<std::string>{"first", "held", "pinned", "third"}));
  EXPECT_EQ(table_.evict(100 * kMi), 12 * kMi);
  EXPECT_EQ(names(), (std::vector<std::string>{"held", "pinned"}));
  EXPECT_EQ(table_.evict(1), 0u);
}

TEST_F(TableTest, TensorsAreEvictedForANewOneOnlyOnRequest) {
  for (int i = 0; i < 4; ++i) table_.create(a_, "t" + std::to_string(i), bytes(15 * kMi), {});
  table_.lease(b_, "t0");
  const std::string said = error_of<OutOfMemory>([&] { table_.create(a_, "more", bytes(40 * kMi), {}); });
  EXPECT_SAYS(said, "above the limit");
  EXPECT_SAYS(said, "'t0' 16777216 bytes (1 leases: B)");
  table_.create(a_, "more", bytes(40 * kMi), {.evict = true});
  EXPECT_EQ(names(), (std::vector<std::string>{"more", "t0"}));
  EXPECT_THROW(table_.create(a_, "much more", bytes(60 * kMi), {.evict = true}), OutOfMemory);
  EXPECT_EQ(names(), (std::vector<std::string>{"more", "t0"}))
      << "nothing must be evicted if that would not make enough room";
}

TEST_F(TableTest, NamesExpire) {
  table_.create(a_, "soon", bytes(10), {.ttl_seconds = 1.5});
  table_.create(a_, "later", bytes(10), {.ttl_seconds = 60});
  table_.create(a_, "never", bytes(10), {});
  table_.lease(a_, "soon");
  EXPECT_EQ(table_.expire(), 1'001'500u);
  now_ms_ += 1500;
  EXPECT_EQ(table_.expire(), 1'060'000u);
  EXPECT_EQ(names(), (std::vector<std::string>{"later", "never"}));
  EXPECT_EQ(table_.deleted(), 1u) << "its lease must keep the tensor";
  table_.remove("later");
  EXPECT_EQ(table_.expire(), std::nullopt);
  for (const double no_time : {0.0, -1.0, 1e300, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_THROW(table_.create(a_, "x", bytes(10), {.ttl_seconds = no_time}), BadInput) << no_time;
  }
}

TEST_F(TableTest, FailedCreateLeavesNothingBehind) {
  EXPECT_THROW(table_.create(a_, "x", bytes(100 * kMi), {}), OutOfMemory);
  EXPECT_THROW(table_.create(a_, "", bytes(1), {}), BadInput);
  EXPECT_THROW(table_.create(a_, "x", {Dtype::f32, {-1}, {}}, {}), BadInput);
  EXPECT_EQ(table_.tensors(), 0u);
  EXPECT_EQ(table_.create(a_, "x", bytes(1), {}).slot, 0u) << "the failed calls must use no slot";
}

TEST_F(TableTest, ListsArePaged) {
  for (const char* name : {"b", "a", "c\u00fc", "d"}) table_.create({}, name, bytes(1), {});
  EXPECT_EQ(table_.list("", 2).size(), 2u);
  EXPECT_EQ(table_.list("b", 2).front().name, "c\u00fc");
  EXPECT_TRUE(table_.list("d", 2).empty());
}

TEST_F(TableTest, ChangesAreReportedInOrder) {
  table_.create(a_, "x", bytes(1), {});
  const Lease lease = table_.lease(a_, "x");
  table_.seal("x");
  table_.remove("x");
  table_.release(a_, lease.id);
  std::vector<Table::Change> kinds;
  for (const auto& [change, about] : changes_) kinds.push_back(change);
  using enum Table::Change;
  EXPECT_EQ(kinds, (std::vector{created, changed, changed, deleted}));
  EXPECT_EQ(changes_[1].second.leases, 1u);
  EXPECT_TRUE(changes_[2].second.sealed);
}

TEST_F(TableTest, StagedTensorGetsItsNameAtTheCommit) {
  const Lease staged = table_.stage(a_, "x", bytes(10), {.ttl_seconds = 60});
  EXPECT_EQ(staged.tensor.leases, 1u);
  EXPECT_TRUE(names().empty());
  EXPECT_TRUE(changes_.empty());
  EXPECT_EQ(table_.staged(), 1u);
  EXPECT_EQ(table_.deleted(), 0u);
  EXPECT_THROW(table_.lease(b_, "x", staged.tensor.generation), NotFound);
  EXPECT_THROW(table_.commit(b_, staged.id), NotFound) << "another client's lease";
  EXPECT_EQ(table_.expire(), std::nullopt);
  now_ms_ += 1000;
  EXPECT_EQ(table_.commit(a_, staged.id).generation, staged.tensor.generation);
  EXPECT_EQ(table_.expire(), 1'061'000u) << "the time to live must count from the commit";
  EXPECT_EQ(table_.lease(b_, "x").tensor.generation, staged.tensor.generation);
  EXPECT_EQ(changes_.front().first, Table::Change::created);
  EXPECT_EQ(table_.staged(), 0u);
  EXPECT_SAYS(error_of<BadInput>([&] { table_.commit(a_, staged.id); }), "the lease of a staged tensor");
}

TEST_F(TableTest, UncommittedTensorIsFreedWithItsClient) {
  table_.stage(a_, "x", bytes(10), {});
  table_.stage(a_, "x", bytes(5 * kMi), {});
  table_.release(b_, table_.stage(b_, "y", bytes(10), {}).id);
  EXPECT_EQ(table_.staged(), 2u);
  EXPECT_EQ(table_.evict(100 * kMi), 0u) << "leases must protect staged tensors from eviction";
  table_.leave(a_);
  EXPECT_EQ(table_.staged(), 0u);
  EXPECT_EQ(table_.arena().taken(), 0u);
  EXPECT_TRUE(changes_.empty());
}

TEST_F(TableTest, CommitReplacesInOneStep) {
  const Description old = table_.create({}, "x", bytes(10), {.pinned = true});
  const Lease reader = table_.lease(b_, "x");
  EXPECT_THROW(table_.stage(a_, "x", bytes(10), {}), AlreadyExists);
  EXPECT_SAYS(error_of<BadInput>([&] { table_.create(a_, "x", bytes(10), {.replace = true}); }), "replace");
  const Lease staged = table_.stage(a_, "x", bytes(10), {.replace = true});
  EXPECT_EQ(table_.stat("x").generation, old.generation);
  changes_.clear();
  table_.commit(a_, staged.id);
  ASSERT_EQ(changes_.size(), 1u) << "observers must never see the name without a tensor";
  EXPECT_EQ(changes_.front().first, Table::Change::created);
  EXPECT_EQ(table_.stat("x").generation, staged.tensor.generation);
  EXPECT_EQ(table_.deleted(), 1u) << "the reader must keep the old tensor";
  table_.release(b_, reader.id);
  EXPECT_EQ(table_.deleted(), 0u);
  // Without `replace`, a commit fails if the name has been taken in the meantime.
  const Lease late = table_.stage(a_, "y", bytes(10), {});
  table_.create({}, "y", bytes(10), {});
  EXPECT_THROW(table_.commit(a_, late.id), AlreadyExists);
}

TEST_F(TableTest, StagingEvictsOthersButNotTheTensorItReplaces) {
  table_.create({}, "x", bytes(15 * kMi), {});
  table_.create({}, "other", bytes(15 * kMi), {});
  EXPECT_THROW(table_.stage(a_, "x", bytes(60 * kMi), {.evict = true, .replace = true}), OutOfMemory);
  EXPECT_EQ(names(), (std::vector<std::string>{"other", "x"}));
  table_.commit(a_, table_.stage(a_, "x", bytes(40 * kMi), {.evict = true, .replace = true}).id);
  EXPECT_EQ(names(), std::vector<std::string>{"x"});
}

class LimitedTable : public TableTest {
 protected:
  LimitedTable() : TableTest({.tensors = 3, .leases_of_client = 2, .bytes_of_client = 1000}) {}
};

TEST_F(LimitedTable, LimitErrorsNameTheClientAndItsUsage) {
  table_.create(a_, "1", bytes(700), {});
  EXPECT_SAYS(error_of<OutOfMemory>([&] { table_.create(a_, "2", bytes(700), {}); }),
              "A has created tensors of 768 bytes");
  table_.create(b_, "2", bytes(700), {});
  const Lease held = table_.lease(a_, "1");
  table_.remove("1");
  EXPECT_THROW(table_.create(a_, "1", bytes(700), {}), OutOfMemory)
      << "the deleted tensor must still count while it is leased";
  table_.release(a_, held.id);
  table_.create(a_, "1", bytes(700), {});
  table_.create({}, "3", bytes(5000), {});
  EXPECT_THROW(table_.create(b_, "4", bytes(1), {}), LimitReached);
  table_.lease(a_, "1");
  table_.lease(a_, "1");
  EXPECT_SAYS(error_of<LimitReached>([&] { table_.lease(a_, "1"); }), "A has 2 leases");
  table_.remove("3");
  EXPECT_THROW(table_.stage(a_, "3", bytes(1), {}), LimitReached) << "a staged tensor needs a lease";
  EXPECT_EQ(table_.staged(), 0u);
}

// --- layouts and names ---

TEST(Layouts, BytesFollowFromShapeAndStrides) {
  EXPECT_EQ(bytes_of({Dtype::f32, {}, {}}), 4u) << "one element";
  EXPECT_EQ(bytes_of({Dtype::f64, {3, 0, 5}, {}}), 0u);
  EXPECT_EQ(bytes_of({Dtype::c128, {2, 3}, {}}), 96u);
  EXPECT_EQ(bytes_of({Dtype::boolean, {4, 4}, {1, 4}}), 16u);
  EXPECT_EQ(bytes_of({Dtype::i16, {4, 4}, {8, 1}}), 2 * (3 * 8 + 3 + 1u));
  EXPECT_EQ(bytes_of({Dtype::u8, {1000}, {0}}), 1u) << "one element, repeated a thousand times";
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  EXPECT_THROW(bytes_of({Dtype::u8, {kHuge, kHuge}, {}}), BadInput);
  EXPECT_THROW(bytes_of({Dtype::u8, {kHuge, 2}, {INT64_MAX, 1}}), BadInput);
  EXPECT_THROW(bytes_of({Dtype::u8, {2, 2}, {1}}), BadInput);
  EXPECT_THROW(bytes_of({Dtype::u8, {2}, {-1}}), BadInput);
  EXPECT_THROW(bytes_of({Dtype::u8, std::vector<std::int64_t>(33, 1), {}}), BadInput);
}

TEST(Layouts, DtypesHaveNames) {
  for (int i = 0; i <= static_cast<int>(Dtype::c128); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    EXPECT_EQ(dtype_of(name_of(dtype)), dtype);
  }
  EXPECT_SAYS(error_of<BadInput>([] { dtype_of("float32"); }), "f16, bf16, f32");
}

TEST(Names, NamesMustBeUtf8) {
  for (const char* good : {"a", "weights/layer.0", "\u00e9\u4e2d\U0001F600", "a b:{c}"})
    EXPECT_NO_THROW(check_name(good));
  EXPECT_NO_THROW(check_name(std::string(512, 'x')));
  for (const char* bad :
       {"", "\x80", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC3", "a\nb", "\x7F"}) {
    EXPECT_THROW(check_name(bad), BadInput) << bad;
  }
  EXPECT_THROW(check_name(std::string(513, 'x')), BadInput);
  EXPECT_THROW(check_name(std::string("a\0b", 3)), BadInput);
}

}  // namespace
}  // namespace feedrate::tensors
