# Makes the targets feedrate_fmt and feedrate_spdlog, which leave the executable without a shared library of either.
#
# fmt is compiled once where this version of it allows that (cmake/fmt_library.cpp), and else in every file.
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)

set(FEEDRATE_FMT_PROBE [[
#include <fmt/chrono.h>
#include <fmt/ranges.h>
#include <fmt/format.h>
int main(int count, char** words) {
  fmt::print(stderr, "{} {:.3f} {:L} {:a} {}", count, 2.5 * count, 1234567L, 2.5F * count, words[0]);
  throw fmt::format_error(fmt::format("{:>{}} {}", 1.0L, count, count > 1));
}
]])
get_target_property(fmt_headers fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
if(NOT FEEDRATE_FMT_COMPILED)
  file(WRITE ${CMAKE_BINARY_DIR}/generated/fmt_probe.cpp "${FEEDRATE_FMT_PROBE}")
  try_compile(FEEDRATE_FMT_COMPILED ${CMAKE_BINARY_DIR}/fmt_probe
    SOURCES ${CMAKE_BINARY_DIR}/generated/fmt_probe.cpp ${CMAKE_SOURCE_DIR}/cmake/fmt_library.cpp
    CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${fmt_headers}" CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON
    OUTPUT_VARIABLE fmt_refused)
  if(NOT FEEDRATE_FMT_COMPILED)
    file(WRITE ${CMAKE_BINARY_DIR}/fmt_probe.log "${fmt_refused}")
  endif()
endif()
if(FEEDRATE_FMT_COMPILED)
  add_library(feedrate_fmt STATIC cmake/fmt_library.cpp)
  target_include_directories(feedrate_fmt SYSTEM PUBLIC ${fmt_headers})
  set_target_properties(feedrate_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)  # it goes into the Python module, too
  if(FEEDRATE_SANITIZER)
    target_compile_options(feedrate_fmt PRIVATE -fsanitize=${FEEDRATE_SANITIZER} -fno-omit-frame-pointer -O1 -g1)
  endif()
else()
  set(kind STATUS)
  if(FEEDRATE_WERROR)
    set(kind FATAL_ERROR)  # a mistake in the probe would look the same, and double the time of every build
  endif()
  message(${kind} "Feedrate: this fmt cannot be compiled apart from its users; the build takes longer. "
          "Why: ${CMAKE_BINARY_DIR}/fmt_probe.log")
  add_library(feedrate_fmt INTERFACE)
  target_link_libraries(feedrate_fmt INTERFACE fmt::fmt-header-only)
endif()

# spdlog's own target would link fmt's shared library.
add_library(feedrate_spdlog INTERFACE)
target_link_libraries(feedrate_spdlog INTERFACE feedrate_fmt)
foreach(property INCLUDE_DIRECTORIES COMPILE_DEFINITIONS)
  get_target_property(value spdlog::spdlog_header_only INTERFACE_${property})
  if(value)
    set_property(TARGET feedrate_spdlog PROPERTY INTERFACE_${property} "${value}")
  endif()
endforeach()
