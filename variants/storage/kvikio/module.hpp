#pragma once
#include <cstddef>
#include <cstdint>

/// The C interface between the engine `kvikio` and the module that is linked with libkvikio, which the engine loads at
/// run time. `error`: a buffer of kFeedrateKvikioText bytes that receives a message.
inline constexpr std::size_t kFeedrateKvikioText = 512;
inline constexpr int kFeedrateKvikioVersion = 2;

struct FeedrateKvikio {
  int version;
  /// Sets the number of threads and the bytes per task, for the process. `direct`: use O_DIRECT where it is possible.
  void (*configure)(unsigned threads, std::size_t task, bool direct);
  /// Opens a file for reading or, without truncating it, for writing too. `compat`: KvikIO's compatibility mode: "on"
  /// (system calls), "off" (cuFile) or "auto". Returns nullptr and a message on failure.
  void* (*open)(const char* path, bool writes, const char* compat, char* error);
  void (*close)(void* file);
  /// Starts a transfer. Returns nullptr and a message on failure.
  void* (*start)(void* file, bool writes, void* device, std::size_t bytes, std::uint64_t offset, char* error);
  /// Returns false while the transfer runs. Otherwise ends it: `bytes` were moved, or `number` is an errno value, or -1
  /// with a message.
  bool (*ended)(void* transfer, std::size_t* bytes, int* number, char* error);
  /// Waits for a transfer and forgets it.
  void (*abandon)(void* transfer);
};

/// Name of the module's function that returns its interface.
inline constexpr const char* kFeedrateKvikioSymbol = "feedrate_kvikio";
