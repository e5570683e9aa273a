#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.h"

namespace muster::auth {

/// What is wrong with a line of the credentials file.
enum class Fault {
  line_too_long,
  control_character,
  fields_missing,
  bad_identity,
  bad_key,
  bad_unix_user,
  bad_certificate,
  bad_namespaces,
  bad_rights,
  unknown_field,
  repeated_field,
  bad_not_after,
  bad_count,
  bad_memory,
  bad_as,
  secret_identity,
  as_missing,
  as_of_key,
  same_proof,     ///< `other_line` has the same key, user or pattern
  differs,        ///< `other_line` has another key of the identity, and other fields
  third_key,      ///< `other_line` has the first one
  limits_differ,  ///< `other_line` is of the same identity
};

/// One thing that is wrong.
struct Problem {
  std::size_t line = 0;  ///< from 1
  Fault fault{};
  std::size_t other_line = 0;  ///< 0: none

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// "line 3: ...": what is wrong, and what would be right. It has nothing of the file: a key may
/// stand in any wrong place of it.
std::string to_string(const Problem& problem);

/// The error of a file with these problems: at most 20 of them in `detail`, in the order of lines,
/// and how many they are in `actual`.
Error error_of(std::vector<Problem> problems);

}  // namespace muster::auth
