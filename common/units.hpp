#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace feedrate {

/// Parses "64", "4Ki", "1Mi", "2Gi" (powers of 1024), "10k", "2M", "1G" (powers of 1000). Errors name `option`.
std::uint64_t parse_count(std::string_view option, std::string_view text);
double parse_number(std::string_view option, std::string_view text);

/// Expands the values of one axis from the notation of the command line and specs: a list ("64,1Ki,64Ki"), a range
/// ("1..8", "0..64:16"), powers of two ("pow2:6..20:2" is 2^6, 2^8 … 2^20), or any of these separated by commas.
/// Numbers from ranges and powers are plain decimal numbers.
std::vector<std::string> expand_values(std::string_view option, std::string_view text);

/// Formats a count: 65536 → "64Ki"; values that are not multiples print unchanged.
std::string format_count(std::uint64_t value);
/// Formats with an SI prefix: 1234567 → "1.23 M".
std::string format_si(double value);
/// Formats a message rate: 1234567 → "1.23 M msg/s".
std::string format_rate(double messages_per_second);
/// Formats a time: 12345 → "12.3 µs".
std::string format_ns(double nanoseconds);

}  // namespace feedrate
