#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "server/http/question.h"

namespace muster::server::http {

inline constexpr std::size_t digest_bytes = 32;
/// SHA-256 of a token. The tokens are 256 random bits, so nobody can try them all: a slow function
/// would protect nothing more.
using Digest = std::array<unsigned char, digest_bytes>;

/// Tokens begin with it, so that people and scanners know one when they see it.
inline constexpr std::string_view token_prefix = "muster-http-";
/// Random bytes of a token.
inline constexpr std::size_t token_random_bytes = 32;
inline constexpr std::size_t tokens_max = 256;
inline constexpr std::size_t tokens_file_bytes_max = 64 * 1024;

/// Somebody who has a token; of the token there is only its digest.
struct TokenHolder {
  std::string name;
  Right right = Right::read;
  Digest digest{};
};

/// The text of a token that is made of random bytes.
std::string token_of(const std::array<unsigned char, token_random_bytes>& random);

/// "read" or "admin".
std::optional<Right> read_right(std::string_view word);
std::string_view to_string(Right right);
/// Letters, digits, "_", "." and "-", at most 64.
bool is_token_name(std::string_view name);

/// A line of the tokens file.
std::string line_of(const TokenHolder& holder);
/// Reads all of the file: lines "NAME RIGHT sha256:HEX"; "#" begins a comment.
///
/// errors  invalid_argument (with the number of the line, and nothing of what is in it)
Result<std::vector<TokenHolder>> read_tokens(std::string_view text);

}  // namespace muster::server::http
