#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::test {

/// Secrets that are looked for in texts and in this process's own memory. They are kept masked, so
/// that whoever looks does not find what he looks with.
class SecretNeedles {
 public:
  static constexpr unsigned char mask = 0xa5;
  /// So many bytes in a row are a find: what is let go may be overwritten in part.
  static constexpr std::size_t part_bytes = 12;

  /// masked  the secret, each byte xor `mask`; at least `part_bytes`
  void add(std::string name, std::string masked);

  /// The names of those that stand there, whole or in part.
  std::set<std::string> find_in(std::string_view bytes) const;
  /// The same in all memory that this process can write to.
  std::set<std::string> find_in_own_memory() const { return find_in_own_memory(Memory::all); }
  /// The same in what of it a core dump would have.
  std::set<std::string> find_in_own_dump() const { return find_in_own_memory(Memory::dumped); }

 private:
  enum class Memory { all, dumped };

  struct Part {
    std::size_t secret;
    std::size_t begin;
  };
  bool is_at(const Part& part, const char* bytes) const;
  void find_in(std::string_view bytes, std::set<std::string>& found) const;
  std::set<std::string> find_in_own_memory(Memory memory) const;

  std::vector<std::string> names_;
  std::vector<std::string> masked_;
  std::vector<std::vector<Part>> parts_by_first_{256 * 256};  ///< two bytes
};

}  // namespace muster::test
