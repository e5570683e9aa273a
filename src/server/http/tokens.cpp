#include "server/http/tokens.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/failure.h"

namespace muster::server::http {
namespace {

constexpr std::string_view digest_mark = "sha256:";
constexpr std::string_view hex_digits = "0123456789abcdef";
constexpr std::string_view letters_of_base64url =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::optional<Digest> read_digest(std::string_view word) {
  if (!word.starts_with(digest_mark)) return {};
  word.remove_prefix(digest_mark.size());
  if (word.size() != 2 * digest_bytes) return {};
  Digest digest;
  for (std::size_t at = 0; at < digest_bytes; ++at) {
    const std::size_t high = hex_digits.find(word[2 * at]);
    const std::size_t low = hex_digits.find(word[2 * at + 1]);
    if (high == word.npos || low == word.npos) return {};
    digest[at] = static_cast<unsigned char>(high << 4 | low);
  }
  return digest;
}

/// What is wrong with it; empty: nothing, and it was added.
std::string add_line(const std::string& line, std::vector<TokenHolder>& holders) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string name;
  std::string right_word;
  std::string digest_word;
  if (!(words >> name)) return {};
  std::string more;
  if (!(words >> right_word >> digest_word) || words >> more)
    return "not of the form \"NAME RIGHT sha256:HEX\"";
  if (!is_token_name(name))
    return "the name has other than letters, digits, \"_\", \".\" and \"-\"";
  const auto right = read_right(right_word);
  if (!right) return "the right is neither read nor admin";
  const auto digest = read_digest(digest_word);
  if (!digest) return "the digest is not \"sha256:\" and 64 digits of 0 to 9 and a to f";
  const auto is_same = [&digest](const TokenHolder& other) { return other.digest == *digest; };
  if (std::any_of(holders.begin(), holders.end(), is_same)) return "the token is there twice";
  if (holders.size() == tokens_max) return "more than " + std::to_string(tokens_max) + " tokens";
  holders.push_back({name, *right, *digest});
  return {};
}

}  // namespace

std::string token_of(const std::array<unsigned char, token_random_bytes>& random) {
  std::string token(token_prefix);
  unsigned bits = 0;
  int bits_count = 0;
  for (const unsigned char byte : random) {
    bits = bits << 8 | byte;
    for (bits_count += 8; bits_count >= 6; bits_count -= 6)
      token += letters_of_base64url[bits >> (bits_count - 6) & 63];
  }
  if (bits_count > 0) token += letters_of_base64url[bits << (6 - bits_count) & 63];
  return token;
}

std::optional<Right> read_right(std::string_view word) {
  if (word == "read") return Right::read;
  if (word == "admin") return Right::admin;
  return {};
}

std::string_view to_string(Right right) {
  return right == Right::admin ? "admin" : right == Right::read ? "read" : "none";
}

bool is_token_name(std::string_view name) {
  const auto is_allowed = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_' || letter == '.' || letter == '-';
  };
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), is_allowed);
}

std::string line_of(const TokenHolder& holder) {
  std::string line = holder.name + " " + std::string(to_string(holder.right)) + " ";
  line += digest_mark;
  for (const unsigned char byte : holder.digest) {
    line += hex_digits[byte >> 4];
    line += hex_digits[byte & 15];
  }
  return line;
}

Result<std::vector<TokenHolder>> read_tokens(std::string_view text) {
  std::vector<TokenHolder> holders;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string wrong = add_line(line, holders);
    if (!wrong.empty())
      return base::failure(ErrorCode::invalid_argument,
                           "line " + std::to_string(number) + ": " + wrong);
  }
  return holders;
}

}  // namespace muster::server::http
