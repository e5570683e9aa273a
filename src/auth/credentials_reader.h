#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "auth/credentials.h"

namespace muster::auth {

/// Reads lines of a credentials file, and sees that those of one identity agree.
class CredentialsReader {
 public:
  std::vector<Credential> read(std::string_view text);

  const std::vector<Problem>& problems() const { return problems_; }

 private:
  using Words = std::vector<std::string_view>;

  void read_line(std::string_view line);
  void read_key(const Words& words, Credential& credential);
  void read_peer(std::string_view word, Credential& credential);
  void read_grant(std::string_view namespaces, std::string_view rights, Credential& credential);
  /// Those of the words behind the first `count`; returns whether `as` is among them.
  bool read_options(const Words& words, std::size_t count, Credential& credential);
  void read_option(std::string_view name, std::string_view value, Credential& credential);
  void read_as(std::string_view value, Credential& credential);
  void check_identities();
  void complain(Fault fault) { problems_.push_back({line_, fault}); }

  std::vector<Credential> credentials_;
  std::vector<Problem> problems_;
  std::size_t line_ = 0;
};

}  // namespace muster::auth
