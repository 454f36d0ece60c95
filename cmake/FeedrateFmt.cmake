# Defines the targets feedrate_fmt and feedrate_spdlog, so that the executable needs no shared library of either.
#
# Each is compiled once (cmake/fmt_library.cpp, cmake/spdlog_library.cpp) if its version allows this; otherwise it is
# compiled again in every file that includes it, which slows the build.
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
get_target_property(fmt_headers fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
get_target_property(spdlog_headers spdlog::spdlog_header_only INTERFACE_INCLUDE_DIRECTORIES)

# Sets FEEDRATE_<name>_COMPILED to whether the program `text`, which uses the library, links with FILES from the folder
# cmake.
function(feedrate_compiles name text)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "FILES;HEADERS;DEFINITIONS")
  if(FEEDRATE_${name}_COMPILED)
    return()
  endif()
  set(probe ${CMAKE_BINARY_DIR}/generated/${name}_probe.cpp)
  file(WRITE ${probe} "${text}")
  list(TRANSFORM arg_FILES PREPEND ${CMAKE_SOURCE_DIR}/cmake/)
  list(TRANSFORM arg_DEFINITIONS PREPEND -D)
  try_compile(FEEDRATE_${name}_COMPILED ${CMAKE_BINARY_DIR}/${name}_probe SOURCES ${probe} ${arg_FILES}
    CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${arg_HEADERS}" COMPILE_DEFINITIONS ${arg_DEFINITIONS}
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON OUTPUT_VARIABLE refused)
  if(NOT FEEDRATE_${name}_COMPILED)
    file(WRITE ${CMAKE_BINARY_DIR}/${name}_probe.log "${refused}")
    set(kind STATUS)
    if(FEEDRATE_WERROR)
      set(kind FATAL_ERROR)  # an error in the probe would look the same
    endif()
    message(${kind} "Feedrate: this ${name} cannot be compiled separately; the build takes longer. "
            "Log: ${CMAKE_BINARY_DIR}/${name}_probe.log")
  endif()
endfunction()

# Defines feedrate_<name> from cmake/<name>_library.cpp. The Python module also links it.
function(feedrate_compiled name)
  add_library(feedrate_${name} STATIC cmake/${name}_library.cpp)
  set_target_properties(feedrate_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(FEEDRATE_SANITIZER)
    target_compile_options(feedrate_${name} PRIVATE -fsanitize=${FEEDRATE_SANITIZER} -fno-omit-frame-pointer -O1 -g1)
  endif()
endfunction()

feedrate_compiles(fmt [[
#include <fmt/chrono.h>
#include <fmt/ranges.h>
#include <fmt/format.h>
int main(int count, char** words) {
  fmt::print(stderr, "{} {:.3f} {:L} {:a} {}", count, 2.5 * count, 1234567L, 2.5F * count, words[0]);
  throw fmt::format_error(fmt::format("{:>{}} {}", 1.0L, count, count > 1));
}
]] FILES fmt_library.cpp HEADERS ${fmt_headers})
if(FEEDRATE_fmt_COMPILED)
  feedrate_compiled(fmt)
  target_include_directories(feedrate_fmt SYSTEM PUBLIC ${fmt_headers})
else()
  add_library(feedrate_fmt INTERFACE)
  target_link_libraries(feedrate_fmt INTERFACE fmt::fmt-header-only)
endif()

# spdlog's own targets would link fmt's shared library.
feedrate_compiles(spdlog [[
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
struct Flag : spdlog::custom_flag_formatter {
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t&) override {}
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Flag>(); }
};
int main(int count, char** words) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("log"));
  auto formatter = std::make_unique<spdlog::pattern_formatter>("%v", spdlog::pattern_time_type::utc);
  formatter->add_flag<Flag>('j').set_pattern("%j");
  spdlog::set_formatter(std::move(formatter));
  spdlog::set_pattern("%v");
  spdlog::set_level(spdlog::get_level());
  spdlog::warn("{} {}", count, words[0]);
  spdlog::shutdown();
}
]] FILES spdlog_library.cpp fmt_library.cpp HEADERS ${fmt_headers} ${spdlog_headers}
   DEFINITIONS SPDLOG_FMT_EXTERNAL SPDLOG_COMPILED_LIB)
if(FEEDRATE_spdlog_COMPILED AND FEEDRATE_fmt_COMPILED)
  feedrate_compiled(spdlog)
  target_compile_definitions(feedrate_spdlog PUBLIC SPDLOG_FMT_EXTERNAL SPDLOG_COMPILED_LIB)
  target_include_directories(feedrate_spdlog SYSTEM PUBLIC ${spdlog_headers})
  target_link_libraries(feedrate_spdlog PUBLIC feedrate_fmt)
else()
  add_library(feedrate_spdlog INTERFACE)
  target_compile_definitions(feedrate_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
  target_include_directories(feedrate_spdlog SYSTEM INTERFACE ${spdlog_headers})
  target_link_libraries(feedrate_spdlog INTERFACE feedrate_fmt)
endif()
