#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace feedrate {

/// "64", "4Ki", "1Mi", "2Gi" (powers of 1024), "10k", "2M", "1G" (powers of 1000). `option` names it in the error.
std::uint64_t parse_count(std::string_view option, std::string_view text);
double parse_number(std::string_view option, std::string_view text);

/// One axis' values as the command line and specs write them: a list ("64,1Ki,64Ki"), a range ("1..8", "0..64:16"),
/// powers of two ("pow2:6..20:2" is 2^6, 2^8 … 2^20), or any of these joined by commas. Numbers come back plain.
std::vector<std::string> expand_values(std::string_view option, std::string_view text);

/// 65536 → "64Ki"; what is no whole multiple stays as it is.
std::string format_count(std::uint64_t value);
/// 1234567 → "1.23 M"
std::string format_si(double value);
/// 1234567 → "1.23 M msg/s"
std::string format_rate(double messages_per_second);
/// 12345 → "12.3 µs"
std::string format_ns(double nanoseconds);

}  // namespace feedrate
