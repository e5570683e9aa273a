#include "auth/problems.h"

#include <algorithm>

#include "base/failure.h"

namespace muster::auth {
namespace {

constexpr std::size_t told_problems_max = 20;

std::string_view text_of(Fault fault) {
  switch (fault) {
    case Fault::line_too_long: return "it is longer than 1024 bytes";
    case Fault::control_character: return "it has a control character; split fields by spaces";
    case Fault::fields_missing:
      return "fields are missing: write ID KEY NAMESPACES RIGHTS, or unix:uid=N or "
             "certificate:PATTERN, NAMESPACES RIGHTS as=ID";
    case Fault::bad_identity:
      return "its first field is no identity: write NAME or TENANT/NAME, each of 1 to 64 letters, "
             "digits, '_', '.' and '-'";
    case Fault::bad_key:
      return "its key is not base64 of 32 to 64 random bytes, of which 8 differ; `musterctl "
             "keygen` "
             "makes one";
    case Fault::bad_unix_user: return "write unix:uid=N or unix:gid=N, with a number";
    case Fault::bad_certificate:
      return "write certificate: and a DNS name, a URI, or CN=NAME; DNS and common names may begin "
             "with '*.'";
    case Fault::bad_namespaces:
      return "its namespaces are wrong: write names, beginnings with '*', or \"\" for the default "
             "one, several by commas; a name has at most 64 bytes";
    case Fault::bad_rights:
      return "its rights are wrong: write read, write, join, observe, supervise, all, admin, peer, "
             "several by commas, each once";
    case Fault::unknown_field:
      return "it has a field too many, or one that is not known: there are not-after=, "
             "connections=, sessions=, groups=, memory=, requests= and as=";
    case Fault::repeated_field: return "it has a field twice";
    case Fault::bad_not_after: return "its not-after is no time as 2027-01-31T00:00:00Z";
    case Fault::bad_count:
      return "its connections, sessions, groups or requests are no number from 1";
    case Fault::bad_memory: return "its memory is no size from 1, as 4096, 64KiB, 16MiB or 1GiB";
    case Fault::bad_as: return "its as= is no identity: write NAME or TENANT/NAME";
    case Fault::secret_identity:
      return "its identity looks like a key or a token for HTTP: write NAME or TENANT/NAME, and "
             "replace what was written there, because it is now known";
    case Fault::as_missing: return "say by as=ID who that is";
    case Fault::as_of_key: return "as= is for Unix users and certificates; a key has its identity";
    case Fault::same_proof: return "it has the same key, user or pattern as line ";
    case Fault::differs:
      return "only the keys of an identity may differ; all other fields have to be as in line ";
    case Fault::third_key: return "an identity has at most two keys; the first one is in line ";
    case Fault::limits_differ: return "an identity has the same limits everywhere, as in line ";
  }
  return "it is wrong";
}

}  // namespace

std::string to_string(const Problem& problem) {
  std::string text = "line " + std::to_string(problem.line) + ": ";
  text += text_of(problem.fault);
  if (problem.other_line > 0) text += std::to_string(problem.other_line);
  return text;
}

Error error_of(std::vector<Problem> problems) {
  std::stable_sort(problems.begin(), problems.end(),
                   [](const Problem& a, const Problem& b) { return a.line < b.line; });
  std::string detail;
  for (std::size_t index = 0; index < std::min(problems.size(), told_problems_max); ++index) {
    if (index > 0) detail += "; ";
    detail += to_string(problems[index]);
  }
  if (problems.size() > told_problems_max) {
    detail += "; and " + std::to_string(problems.size() - told_problems_max) + " more problems";
  }
  Error error = base::failure(ErrorCode::invalid_argument, std::move(detail));
  error.actual = problems.size();
  return error;
}

}  // namespace muster::auth
