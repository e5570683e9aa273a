#include "support/secret_needles.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <utility>

namespace muster::test {
namespace {

constexpr std::size_t chunk_bytes = 1 << 16;
constexpr std::size_t step_bytes = 4;

std::size_t first_two(const char* bytes) {
  return static_cast<unsigned char>(bytes[0]) * std::size_t{256} +
         static_cast<unsigned char>(bytes[1]);
}

char unmasked(char byte) {
  return static_cast<char>(static_cast<unsigned char>(byte) ^ SecretNeedles::mask);
}

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool is_dumped = true;
};

std::vector<Mapping> writable_mappings() {
  std::vector<Mapping> mappings;
  std::ifstream maps("/proc/self/smaps");
  bool is_listed = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0;
    unsigned long long end = 0;
    char flags[5] = "";
    if (std::sscanf(line.c_str(), "%llx-%llx %4s", &begin, &end, flags) == 3) {
      is_listed = flags[0] == 'r' && flags[1] == 'w';
      if (is_listed) mappings.push_back({begin, end});
    } else if (is_listed && line.rfind("VmFlags:", 0) == 0) {
      mappings.back().is_dumped = line.find(" dd") == line.npos;
    }
  }
  return mappings;
}

}  // namespace

void SecretNeedles::add(std::string name, std::string masked) {
  for (std::size_t begin = 0; begin + part_bytes <= masked.size(); begin += step_bytes) {
    const char first[] = {unmasked(masked[begin]), unmasked(masked[begin + 1])};
    parts_by_first_[first_two(first)].push_back({names_.size(), begin});
  }
  names_.push_back(std::move(name));
  masked_.push_back(std::move(masked));
}

bool SecretNeedles::is_at(const Part& part, const char* bytes) const {
  const std::string& masked = masked_[part.secret];
  for (std::size_t index = 0; index < part_bytes; ++index) {
    if (unmasked(masked[part.begin + index]) != bytes[index]) return false;
  }
  return true;
}

std::set<std::string> SecretNeedles::find_in(std::string_view bytes) const {
  std::set<std::string> found;
  find_in(bytes, found);
  return found;
}

void SecretNeedles::find_in(std::string_view bytes, std::set<std::string>& found) const {
  for (std::size_t at = 0; at + part_bytes <= bytes.size(); ++at) {
    for (const Part& part : parts_by_first_[first_two(bytes.data() + at)]) {
      if (is_at(part, bytes.data() + at)) found.insert(names_[part.secret]);
    }
  }
}

std::set<std::string> SecretNeedles::find_in_own_memory(Memory memory_looked_in) const {
  std::set<std::string> found;
  const int memory = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  std::vector<char> chunk(chunk_bytes);
  for (const Mapping& mapping : writable_mappings()) {
    if (memory_looked_in == Memory::dumped && !mapping.is_dumped) continue;
    // Chunks overlap by what a part could have in the one before.
    for (std::uint64_t at = mapping.begin; at < mapping.end; at += chunk_bytes - part_bytes) {
      const std::size_t wanted = std::min<std::uint64_t>(chunk_bytes, mapping.end - at);
      const ssize_t got = ::pread(memory, chunk.data(), wanted, static_cast<off_t>(at));
      if (got <= 0) break;  // it has gone
      find_in({chunk.data(), static_cast<std::size_t>(got)}, found);
      ::explicit_bzero(chunk.data(), static_cast<std::size_t>(got));
    }
  }
  ::close(memory);
  return found;
}

}  // namespace muster::test
