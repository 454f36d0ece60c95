// Requests from other processes: each invalid request gets an error that names the problem, and changes nothing.
#include "libraries/tensors/protocol.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "libraries/tensors/errors.hpp"
#include "libraries/tensors/store/requests.hpp"
#include "tests/fuzz/requests_target.hpp"

namespace feedrate::tensors {
namespace {

using Json = nlohmann::json;

TEST(Requests, RequestsAreParsedWithTheFieldsOfTheirOperation) {
  const Request made = parse_request(
      R"({"op":"create","name":"w","dtype":"bf16","shape":[2,3],"strides":[3,1],"pin":true,"ttl":2.5,"pid":7})");
  EXPECT_EQ(made.op, Op::create);
  EXPECT_EQ(made.layout, (Layout{Dtype::bf16, {2, 3}, {3, 1}}));
  EXPECT_TRUE(made.create.pinned);
  EXPECT_EQ(made.create.ttl_seconds, 2.5);
  EXPECT_EQ(parse_request(R"({"op":"delete","name":"w","generation":5})").generation, 5u);
  const Request staged =
      parse_request(R"({"op":"create","name":"w","dtype":"u8","shape":[1],"staged":true,"replace":true})");
  EXPECT_TRUE(staged.staged);
  EXPECT_TRUE(staged.create.replace);
  EXPECT_EQ(parse_request(R"({"op":"commit","lease":7})").lease, 7u);
  EXPECT_EQ(parse_request(R"({"op":"create","name":"w","dtype":"u8","shape":[]})").layout.shape.size(), 0u);
}

struct Wrong {
  std::string text, says;
};

class WrongRequest : public testing::TestWithParam<Wrong> {};

TEST_P(WrongRequest, IsRejectedWithItsReason) {
  try {
    parse_request(GetParam().text);
    ADD_FAILURE() << "accepted";
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam().says), std::string::npos) << error.what();
    EXPECT_LT(std::string(error.what()).size(), 400u) << "the error for a long request must stay short";
    const Json answer = Json::parse(Answer{to_json(error)}.text());
    EXPECT_EQ(answer.at("error"), "bad_request");
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongRequest,
    testing::Values(Wrong{"", "a JSON object"}, Wrong{"null", "a JSON object"}, Wrong{"[]", "a JSON object"},
                    Wrong{R"({"op":"create")", "no JSON"}, Wrong{R"({"name":"x"})", "op"},
                    Wrong{R"({"op":7})", "a string"}, Wrong{R"({"op":"drop","name":"x"})", "create, commit, get"},
                    Wrong{R"({"op":"get"})", "'get' requires"}, Wrong{R"({"op":"get","name":""})", "1 to 512 bytes"},
                    Wrong{R"({"op":"get","name":"a\u0000b"})", "byte 1 is 0x00"},
                    Wrong{R"({"op":"get","name":")" + std::string(600, 'n') + R"("})", "1 to 512 bytes"},
                    Wrong{"{\"op\":\"get\",\"name\":\"\xFF\"}", "no JSON"},
                    Wrong{R"({"op":"get","name":"x","shape":[1]})", "of 'get'"},
                    Wrong{R"({"op":"create","name":"x","dtype":"f32","shape":[-1]})", "0 and more"},
                    Wrong{R"({"op":"create","name":"x","dtype":"f32","shape":[1.5]})", "whole numbers"},
                    Wrong{R"({"op":"create","name":"x","dtype":"f32","shape":[18446744073709551615]})",
                          "whole numbers"},
                    Wrong{R"({"op":"create","name":"x","dtype":"f32","shape":[4611686018427387904,4]})", "2^62"},
                    Wrong{R"({"op":"create","name":"x","dtype":"float","shape":[1]})", "f16, bf16"},
                    Wrong{R"({"op":"create","name":"x","dtype":"f32","shape":"1"})", "an array"},
                    Wrong{R"({"op":"release","lease":-1})", "a whole number"},
                    Wrong{R"({"op":"create","name":"x","dtype":"u8","shape":[1],"replace":true})", "`staged`"},
                    Wrong{R"({"op":"commit","name":"x"})", "'commit' requires"},
                    Wrong{R"({"op":"create","name":"x","dtype":"u8","shape":[1],"staged":1})", "true, false"},
                    Wrong{R"({"op":"wait","name":"x","timeout":"soon"})", "seconds"},
                    Wrong{R"({"op":"list","after":3})", "a string"}, Wrong{std::string(100'000, '['), "64 KiB"},
                    Wrong{std::string(60'000, '['), "no JSON"},
                    Wrong{R"({"op":)" + std::string(30'000, '[') + std::string(30'000, ']') + "}", "an array of 1"},
                    Wrong{R"({"op":"status","device":")" + std::string(60'000, 'd') + R"("})", "at most 512 bytes"},
                    Wrong{R"({"op":"list","after":")" + std::string(70'000, 'x') + R"("})", "64 KiB"}));

TEST(Requests, FuzzCorpusDoesNoHarm) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FEEDRATE_SOURCE_DIR "/tests/fuzz/corpus/requests")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    test::serve_foreign_requests(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    ++files;
  }
  EXPECT_GT(files, 2u);
}

TEST(Answers, AnswersPreserveTheErrorType) {
  EXPECT_THROW(throw_if_error(to_json(NotFound("x"))), NotFound);
  EXPECT_THROW(throw_if_error(to_json(AlreadyExists("x"))), AlreadyExists);
  EXPECT_THROW(throw_if_error(to_json(OutOfMemory("x"))), OutOfMemory);
  EXPECT_THROW(throw_if_error(to_json(LimitReached("x"))), LimitReached);
  EXPECT_THROW(throw_if_error(to_json(TimedOut("x"))), TimedOut);
  EXPECT_THROW(throw_if_error(to_json(BadInput("x"))), BadInput);
  EXPECT_THROW(throw_if_error(to_json(Failure("x"))), Failure);
  EXPECT_THROW(throw_if_error(Json::array()), Failure);
  EXPECT_NO_THROW(throw_if_error({{"ok", true}}));
}

class RequestsOfTheList : public testing::Test {
 protected:
  Json ask(const Json& request) {
    return Json::parse(act(table_, identity_, std::nullopt, parse_request(request.dump())).text());
  }
  std::unique_ptr<ChunkMemory> memory_ = memfd_memory();
  Table table_{*memory_, std::size_t{1} << 26, {}, [](auto...) {}, [] { return std::uint64_t{1}; }};
  Identity identity_{"cpu", "here", "memfd", "/s", "life"};
};

TEST_F(RequestsOfTheList, RequestGetsAHandleButNoLease) {
  Json answer = ask({{"op", "create"}, {"name", "w"}, {"dtype", "f32"}, {"shape", {4}}, {"node", "here"}});
  ASSERT_TRUE(answer.at("ok")) << answer;
  answer = ask({{"op", "get"}, {"name", "w"}});
  EXPECT_EQ(answer.at("socket"), "/s");
  EXPECT_EQ(answer.at("tensor").at("ipc_handle"), "memfd:life:1");
  EXPECT_EQ(answer.at("tensor").at("refcount"), 0);
  EXPECT_FALSE(answer.contains("lease"));
  EXPECT_EQ(ask({{"op", "release"}, {"lease", 1}}).at("error"), "bad_request");
  EXPECT_EQ(ask({{"op", "get"}, {"name", "w"}, {"device", "cuda:0"}}).at("error"), "bad_request");
  EXPECT_EQ(ask({{"op", "get"}, {"name", "v"}}).at("error"), "not_found");
  EXPECT_TRUE(ask({{"op", "delete"}, {"name", "w"}}).at("ok"));
  EXPECT_EQ(ask({{"op", "status"}}).at("tensors"), 0);
}

TEST_F(RequestsOfTheList, ListAnswersFitAPacketAndOmitNothing) {
  const Layout widest{Dtype::u8, std::vector<std::int64_t>(kMaxDimensions, 1),
                      std::vector<std::int64_t>(kMaxDimensions, 1)};
  for (int i = 0; i < 300; ++i) table_.create({}, std::string(500, 'n') + std::to_string(1000 + i), widest, {});
  std::string after;
  std::size_t found = 0;
  for (bool more = true; more;) {
    const Answer answer = act(table_, identity_, std::nullopt, {.op = Op::list, .after = after});
    EXPECT_LE(answer.text().size(), kMaxPacketBytes);
    const Json list = Json::parse(answer.text());
    const Json& tensors = list.at("tensors");
    ASSERT_FALSE(tensors.empty());
    found += tensors.size();
    after = tensors.back().at("name");
    more = list.at("more");
  }
  EXPECT_EQ(found, 300u);
}

TEST(Description, DescriptionIsWrittenAndReadBack) {
  Description about{.name = "a \"name\" \u00e4", .generation = 7, .layout = {Dtype::bf16, {2, 3}, {}}};
  about.bytes = 12;
  about.place = {3, 256, 512};
  about.slot = 5;
  about.leases = 2;
  about.created_ms = 99;
  Json wanted{{"name", "a \"name\" \u00e4"},
              {"dtype", "bf16"},
              {"shape", {2, 3}},
              {"bytes", 12},
              {"generation", 7},
              {"refcount", 2},
              {"chunk", 3},
              {"offset", 256},
              {"taken", 512},
              {"slot", 5},
              {"pinned", false},
              {"sealed", false},
              {"ctime_ms", 99}};
  EXPECT_EQ(Json::parse(written(about)), wanted);
  about.layout = {Dtype::c128, {}, {}};
  about.expires_ms = 12;
  about.pinned = about.sealed = true;
  wanted.update({{"dtype", "c128"}, {"shape", Json::array()}, {"expires_ms", 12}, {"pinned", true}, {"sealed", true}});
  EXPECT_EQ(to_json(about), wanted);
  about.layout = {Dtype::u8, {4, 4}, {8, -1}};
  wanted.update({{"dtype", "u8"}, {"shape", {4, 4}}, {"strides", {8, -1}}});
  EXPECT_EQ(to_json(about), wanted);
  EXPECT_EQ(to_json(description_of(wanted)), wanted);
}

}  // namespace
}  // namespace feedrate::tensors
