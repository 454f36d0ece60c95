#include "libraries/tensors/safetensors.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "common/error.hpp"

namespace feedrate::tensors {
namespace {

std::string file_of(const std::string& header, std::size_t data, std::uint64_t length = 0) {
  if (length == 0) length = header.size();
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(length >> 8 * i);
  return file + header + std::string(data, 'x');
}
Safetensors parsed(const std::string& file) {
  std::istringstream stream(file);
  return read_safetensors(stream, file.size());
}
/// What is said of a file that is rejected.
std::string said(const std::string& file) {
  try {
    parsed(file);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}
std::string said_of(const std::string& header, std::size_t data) { return said(file_of(header, data)); }

TEST(Safetensors, TensorsHaveTheirPlacesInTheFile) {
  const std::string header =
      R"({"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},"__metadata__":{"format":"pt"},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"none":{"dtype":"I64","shape":[0,7],"data_offsets":[16,16]}}   )";
  const Safetensors found = parsed(file_of(header, 16));
  ASSERT_EQ(found.tensors.size(), 3u);
  EXPECT_EQ(found.tensors[0].name, "a");
  EXPECT_EQ(found.tensors[0].start, 8 + header.size());
  EXPECT_EQ(found.tensors[1].name, "b");
  EXPECT_EQ(found.tensors[1].layout, (Layout{Dtype::bf16, {2, 3}}));
  EXPECT_EQ(found.tensors[1].start, 12 + header.size());
  EXPECT_EQ(found.tensors[1].bytes, 12u);
  EXPECT_EQ(found.tensors[2].bytes, 0u);
  EXPECT_EQ(found.metadata.at("format"), "pt");
}

TEST(Safetensors, EveryTypeHasItsSize) {
  std::string header;
  std::size_t at = 0;
  for (const auto& [name, bytes] : {std::pair{"BOOL", 1},
                                    {"U8", 1},
                                    {"I8", 1},
                                    {"F8_E5M2", 1},
                                    {"F8_E4M3", 1},
                                    {"I16", 2},
                                    {"U16", 2},
                                    {"F16", 2},
                                    {"BF16", 2},
                                    {"I32", 4},
                                    {"U32", 4},
                                    {"F32", 4},
                                    {"F64", 8},
                                    {"I64", 8},
                                    {"U64", 8},
                                    {"C64", 8}}) {
    std::ostringstream entry;
    entry << (header.empty() ? "{" : ",") << '"' << name << R"(":{"dtype":")" << name
          << R"(","shape":[3],"data_offsets":[)" << at << ',' << at + static_cast<std::size_t>(3 * bytes) << "]}";
    header += entry.str();
    at += static_cast<std::size_t>(3 * bytes);
  }
  EXPECT_EQ(parsed(file_of(header + "}", at)).tensors.size(), 16u);
}

TEST(Safetensors, DamagedFilesAreRejected) {
  EXPECT_NE(said("").find("a file of 0 bytes"), std::string::npos);
  EXPECT_NE(said(file_of("{}", 0, 3)).find("a header of 3 bytes in a file of 10"), std::string::npos);
  EXPECT_NE(said(file_of("{}", 0, ~0ull)).find("a header of 18446744073709551615 bytes"), std::string::npos);
  for (const char* header : {"[]", "{", "null", R"({"a":1,"a":1})", R"({"__metadata__":{"k":"1","k":"2"}})"}) {
    EXPECT_NE(said_of(header, 0).find("no JSON object with unique names"), std::string::npos) << header;
  }
  EXPECT_NE(said_of(R"({"w":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}", 0).find("no JSON object"),
            std::string::npos)
      << "a header whose depth could exhaust the stack";
  for (const char* entry :
       {"1", "{}", R"({"dtype":"F32","shape":[1]})", R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1})"}) {
    EXPECT_NE(said_of(std::string(R"({"w":)") + entry + "}", 4).find("tensor 'w' with the description"),
              std::string::npos)
        << entry;
  }
  const auto with = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"w":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  EXPECT_EQ(said_of(with(R"("F32")", "[1]", "[0,4]"), 4), "accepted");
  EXPECT_NE(said_of(with(R"("F4")", "[1]", "[0,4]"), 4).find("the dtype \"F4\""), std::string::npos);
  EXPECT_NE(said_of(with("7", "[1]", "[0,4]"), 4).find("the dtype 7"), std::string::npos);
  for (const char* shape : {"[-1]", "[1.0]", "1", "[4611686018427387904]"}) {
    EXPECT_NE(said_of(with(R"("F32")", shape, "[0,4]"), 4).find("with the shape"), std::string::npos) << shape;
  }
  for (const char* offsets : {"[0,5]", "[4,0]", "[0]", "[0,\"4\"]", "4"}) {
    EXPECT_NE(said_of(with(R"("F32")", "[1]", offsets), 4).find("with the data_offsets"), std::string::npos) << offsets;
  }
  EXPECT_NE(said_of(with(R"("F64")", "[4294967296,4294967296]", "[0,8]"), 8).find("with the data_offsets"),
            std::string::npos);
}

TEST(Safetensors, FileAndHeaderMustAgree) {
  const std::string two =
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":)";
  EXPECT_EQ(said_of(two + "[4,8]}}", 8), "accepted");
  EXPECT_NE(said_of(two + "[4,8]}}", 7).find("tensor 'b', which ends 1 bytes after the end of the file"),
            std::string::npos)
      << "a truncated file";
  EXPECT_NE(said_of(two + "[4,8]}}", 9).find("1 bytes after the last tensor"), std::string::npos);
  EXPECT_NE(said_of(two + "[5,9]}}", 9).find("tensor 'b' at byte 5 of the data, where the one before it ends at 4"),
            std::string::npos);
  EXPECT_NE(said_of(two + "[3,7]}}", 8).find("tensor 'b' at byte 3"), std::string::npos) << "they overlap";
}

TEST(Safetensors, IndexNamesFilesBesideIt) {
  const auto index = [](const std::string& text) {
    std::istringstream stream(text);
    return read_safetensors_index(stream);
  };
  const auto files =
      index(R"({"metadata":{"total_size":8},"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})");
  EXPECT_EQ(files.at("a"), "model-1.safetensors");
  EXPECT_EQ(files.size(), 2u);
  for (const char* text :
       {"{}", "[]", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})", R"({"weight_map":{"a":"../x"}})",
        R"({"weight_map":{"a":".."}})", R"({"weight_map":{"a":""}})", R"({"weight_map":{"a":"x","a":"y"}})"}) {
    EXPECT_THROW(index(text), BadInput) << text;
  }
}

}  // namespace
}  // namespace feedrate::tensors
