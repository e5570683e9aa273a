#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "server/http/question.h"
#include "server/http/tokens.h"

namespace muster::server::http {

/// SHA-256 by OpenSSL. Returns whether it could be made.
bool make_digest(std::string_view bytes, unsigned char* digest);

/// Looks who asks. A valid token is let in always; so who guesses locks nobody out.
class Guard {
 public:
  /// From now on these are known; nobody, unless it was called.
  void set_tokens(std::vector<TokenHolder> tokens) { tokens_ = std::move(tokens); }

  enum class Verdict { known, unknown, too_many };
  struct Judgement {
    Verdict verdict;
    Right right = Right::none;
    Digest digest{};             ///< of the token, where it is known
    bool is_to_be_told = false;  ///< a wrong token, which the log should have
  };
  /// authorization  the field, as it came
  /// unit           whose failures are counted together
  Judgement judge(std::string_view authorization, const std::string& unit, base::Instant now);
  Judgement judge_token(std::string_view token, const std::string& unit, base::Instant now);
  /// Of the token with that digest; none: there is no such token, or not any more.
  Right right_of(const Digest& digest) const;

 private:
  struct Failures {
    base::Instant since{};
    std::uint32_t count = 0;
  };

  /// Of those that have failed here lately, with this one.
  std::uint32_t count_failure(const std::string& unit, base::Instant now);

  std::vector<TokenHolder> tokens_;
  std::map<std::string, Failures> failures_;
};

}  // namespace muster::server::http
