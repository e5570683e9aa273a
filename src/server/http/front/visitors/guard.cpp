#include "server/http/front/visitors/guard.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <chrono>
#include <iterator>

namespace muster::server::http {
namespace {

constexpr auto failures_window = std::chrono::minutes(1);
constexpr std::uint32_t failures_max = 10;  ///< of a unit in a window
constexpr std::size_t units_max = 1024;

/// "Bearer TOKEN" -> TOKEN; empty: it is of another form.
std::string_view token_in(std::string_view authorization) {
  constexpr std::string_view scheme = "bearer ";
  if (authorization.size() <= scheme.size()) return {};
  for (std::size_t at = 0; at < scheme.size(); ++at) {
    const char letter = authorization[at];
    const bool is_large = letter >= 'A' && letter <= 'Z';
    if ((is_large ? static_cast<char>(letter - 'A' + 'a') : letter) != scheme[at]) return {};
  }
  authorization.remove_prefix(scheme.size());
  while (authorization.starts_with(' ')) authorization.remove_prefix(1);
  return authorization;
}

}  // namespace

bool make_digest(std::string_view bytes, unsigned char* digest) {
  unsigned int size = 0;
  return EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) == 1 &&
         size == digest_bytes;
}

Guard::Judgement Guard::judge(std::string_view authorization, const std::string& unit,
                              base::Instant now) {
  if (authorization.empty()) return {Verdict::unknown};  // a browser asks so at first
  return judge_token(token_in(authorization), unit, now);
}

Guard::Judgement Guard::judge_token(std::string_view token, const std::string& unit,
                                    base::Instant now) {
  Digest digest{};
  const Right right = make_digest(token, digest.data()) ? right_of(digest) : Right::none;
  if (right != Right::none) return {Verdict::known, right, digest};
  const std::uint32_t count = count_failure(unit, now);
  if (count > failures_max) return {Verdict::too_many};
  Judgement judgement{Verdict::unknown};
  judgement.is_to_be_told = true;
  return judgement;
}

/// All are looked at, and each takes as long, whoever it is.
Right Guard::right_of(const Digest& digest) const {
  Right right = Right::none;
  for (const TokenHolder& holder : tokens_) {
    if (CRYPTO_memcmp(holder.digest.data(), digest.data(), digest_bytes) == 0) right = holder.right;
  }
  return right;
}

std::uint32_t Guard::count_failure(const std::string& unit, base::Instant now) {
  const auto is_over = [now](const Failures& failures) {
    return now - failures.since >= failures_window;
  };
  if (failures_.size() >= units_max && !failures_.contains(unit)) {
    std::erase_if(failures_, [&](const auto& entry) { return is_over(entry.second); });
    // So many at once are one attack: whoever is new counts with those before.
    if (failures_.size() >= units_max) return count_failure(failures_.begin()->first, now);
  }
  Failures& failures = failures_[unit];
  if (failures.count == 0 || is_over(failures)) failures = {now, 0};
  return ++failures.count;
}

}  // namespace muster::server::http
