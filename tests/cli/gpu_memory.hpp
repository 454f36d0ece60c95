#pragma once
#include <array>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>

namespace feedrate::cli_test {

/// Output of nvidia-smi without header and units; empty if nvidia-smi is missing.
inline std::string nvidia_smi(const std::string& query) {
  const std::unique_ptr<FILE, int (*)(FILE*)> answer(
      popen(("nvidia-smi --query-" + query + " --format=csv,noheader,nounits").c_str(), "r"), pclose);
  std::string text;
  std::array<char, 256> part{};
  while (fgets(part.data(), part.size(), answer.get()) != nullptr) text += part.data();
  return text;
}

/// Memory in use on the first GPU by all processes, in MiB; -1 if unknown.
inline long gpu_memory_used() {
  std::istringstream answer(nvidia_smi("gpu=memory.used"));
  long used = -1;
  answer >> used;
  return answer ? used : -1;
}

/// GPU memory in use by one process, in MiB; -1 if unknown.
inline long gpu_memory_used_by(int process) {
  std::istringstream answer(nvidia_smi("compute-apps=pid,used_memory"));
  int id = 0;
  char comma = 0;
  long used = 0;
  while (answer >> id >> comma >> used) {
    if (id == process) return used;
  }
  return -1;
}

}  // namespace feedrate::cli_test
