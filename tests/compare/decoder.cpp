// Decodes bytes that come from anywhere, as a receiver of objects does.
//
//     compare_decoder FILE     as a list of texts, by the default codec
//
// Prints a line of JSON: how it ended, how long it took, and by how much the process grew.

#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "muster/codec_cereal.h"

namespace {

/// The most that this process has ever used.
long resident_kib_max() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const long before_kib = resident_kib_max();
  const auto began = std::chrono::steady_clock::now();
  const auto decoded = muster::CerealCodec::decode<std::vector<std::string>>(bytes);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const nlohmann::json line{
      {"code", decoded ? "ok" : std::string(muster::name_of(decoded.error().code))},
      {"seconds", took.count()},
      {"grown_bytes", (resident_kib_max() - before_kib) * 1024}};
  std::cout << line.dump() << '\n';
  return 0;
}
