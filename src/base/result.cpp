#include "muster/result.h"

#include <cstdio>
#include <cstdlib>

MUSTER_BEGIN_NAMESPACE

BadResult::BadResult(Error error) : error_(std::move(error)), message_(error_.message()) {}

// Out of line, so that the type's vtable and typeinfo live in the library alone and a handler in
// the host catches what the library threw.
BadResult::~BadResult() = default;

namespace detail {

void abort_without_value(const Error& error) noexcept {
  std::fprintf(stderr, "muster: a Result was used as if it had a value, and it has an error: %s\n",
               error.message().c_str());
  std::abort();
}

void abort_without_error() noexcept {
  std::fputs("muster: error() of a Result that has none\n", stderr);
  std::abort();
}

void throw_bad_result(const Error& error) { throw BadResult(error); }

std::string current_exception_text() {
  try {
    throw;
  } catch (const std::exception& thrown) {
    return thrown.what();
  } catch (...) {
    return "an exception of a type that is no std::exception";
  }
}

}  // namespace detail

MUSTER_END_NAMESPACE
