#include "auth/credentials.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "auth/admission.h"
#include "auth/difference.h"
#include "auth/key_ids.h"
#include "fuzz.h"
#include "support/credential_text.h"

// The credentials file: any text is refused with its problems, which have no word of it, or gives
// credentials that can be found by what they are proved with, and written so that they are read
// again as the same.

using namespace muster::auth;
using muster::fuzz::require;

namespace {

/// All that messages say of any file.
std::string told_of_any() {
  std::string told;
  for (int fault = 0; fault <= static_cast<int>(Fault::limits_differ); ++fault) {
    told += to_string(Problem{1, static_cast<Fault>(fault), 0}) + ";\n";  // as between two of them
  }
  return told;
}

/// Whether the message has a part of the text that could be one of a key.
bool tells_of(std::string_view text, const std::string& message) {
  static const std::string any = told_of_any();
  constexpr std::size_t part_bytes = 16;
  for (std::size_t at = 0; at + part_bytes <= text.size(); at += part_bytes / 2) {
    const std::string_view part = text.substr(at, part_bytes);
    const bool is_of_one_word = part.find(' ') == std::string_view::npos;
    const bool is_told = is_of_one_word && message.find(part) != std::string::npos;
    if (is_told && any.find(part) == std::string::npos) return true;
  }
  return false;
}

void check_refusal(std::string_view text, const muster::Error& error) {
  const bool is_too_large = error.code == muster::ErrorCode::too_large;
  require(is_too_large || error.code == muster::ErrorCode::invalid_argument,
          "it says what is wrong");
  require(is_too_large || error.actual > 0, "it counts the problems");
  require(!error.detail.empty() && error.detail.size() < 20 * 300, "it is told in short");
  require(!tells_of(text, error.detail), "nothing of the text is told");
}

void check_credential(const Credentials& credentials, std::size_t position) {
  const Credential& each = credentials.all()[position];
  const Grant& grant = each.grant;
  require(credentials.find(each.proof) == position, "a credential is found by its proof");
  require(read_identity(to_string(grant.identity)) == grant.identity, "an identity stays the same");
  require(!grant.rights.is_empty(), "somebody with a credential has a right");
  if (const auto* const user = std::get_if<UnixUser>(&each.proof)) {
    const bool is_user = user->kind == UnixUser::Kind::user;
    const auto* const found = is_user ? credentials.find_unix(user->number, UINT32_MAX)
                                      : credentials.find_unix(UINT32_MAX, user->number);
    require(found == &each, "a user is found by his number");
  }
  const Admission admission = admit(grant, {muster::wire::Role::supervisor, "train"}, UtcTime());
  const bool is_admitted = std::holds_alternative<Admitted>(admission);
  require(!is_admitted || grant.namespaces.allows("train"), "nobody is admitted without a right");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = Credentials::read(text);
  if (!read) {
    check_refusal(text, read.error());
    return 0;
  }
  for (std::size_t position = 0; position < read->all().size(); ++position) {
    check_credential(*read, position);
  }
  const std::string written = text_of(*read);
  const auto again = Credentials::read(written);
  require(again.has_value(), "what is written is read");
  require(text_of(*again) == written, "what is read again is the same");
  const Difference none = difference_of(*read, *again);
  require(none.identities_gone.empty() &&
              std::all_of(none.successors.begin(), none.successors.end(),
                          [](const Successor& each) { return each.kind == Successor::Kind::same; }),
          "nothing has changed");
  return 0;
}
