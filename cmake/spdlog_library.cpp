// Compiles spdlog once, like fmt (fmt_library.cpp), which halves the compile time of files that log. It needs
// SPDLOG_COMPILED_LIB, which removes the implementation from spdlog's headers. The sinks are those that Feedrate uses.
#include <mutex>

#include <spdlog/common-inl.h>
#include <spdlog/details/backtracer-inl.h>
#include <spdlog/details/log_msg-inl.h>
#include <spdlog/details/log_msg_buffer-inl.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/os-inl.h>
#include <spdlog/details/periodic_worker-inl.h>
#include <spdlog/details/registry-inl.h>
#include <spdlog/logger-inl.h>
#include <spdlog/pattern_formatter-inl.h>
#include <spdlog/sinks/ansicolor_sink-inl.h>
#include <spdlog/sinks/sink-inl.h>
#include <spdlog/sinks/stdout_color_sinks-inl.h>
#include <spdlog/spdlog-inl.h>

namespace spdlog {
namespace sinks {
template class SPDLOG_API ansicolor_sink<details::console_mutex>;
template class SPDLOG_API ansicolor_stdout_sink<details::console_mutex>;
template class SPDLOG_API ansicolor_stderr_sink<details::console_mutex>;
}  // namespace sinks
template SPDLOG_API std::shared_ptr<logger> stderr_color_mt<synchronous_factory>(const std::string&, color_mode);
}  // namespace spdlog
