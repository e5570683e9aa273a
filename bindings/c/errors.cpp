#include "errors.h"

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "json/documents.h"
#include "json/fields.h"

namespace muster::c {
namespace {

/// The texts that a muster_error shows.
struct OwnedError : muster_error {
  OwnedError(const Error& from, std::string its_json)
      : name_text(name_of(from.code)),
        message_text(from.message()),
        json_text(std::move(its_json)) {
    size = sizeof(muster_error);
    code = static_cast<std::int32_t>(from.code);
    happened = static_cast<std::int32_t>(from.happened);
    name = name_text.c_str();
    message = message_text.c_str();
    json = json_text.c_str();
  }

  std::string name_text;
  std::string message_text;
  std::string json_text;
};

muster_error memory_error = {
    sizeof(muster_error),
    MUSTER_RESOURCE_EXHAUSTED,
    MUSTER_HAPPENED_MAYBE,
    "resource_exhausted",
    "resource_exhausted: this process has no memory left; the call may have happened",
    R"({"code":"resource_exhausted","number":25,"round":0,"happened":"maybe","ranks":[],)"
    R"("ranks_at_fault":[],"message":"resource_exhausted: this process has no memory left; )"
    R"(the call may have happened"})",
};

muster_error* made_here(ErrorCode code, std::string_view operation, std::string_view detail,
                        Happened happened) noexcept {
  try {
    Error error;
    error.code = code;
    error.operation = operation;
    error.decided_by = "client";
    error.happened = happened;
    error.detail = detail;
    return error_of(error);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

}  // namespace

muster_error* error_of(const Error& error) noexcept {
  try {
    return new OwnedError(error, json::line_of(json::json_of(error)));
  } catch (const std::exception&) {
    return out_of_memory();
  }
}

muster_error* out_of_memory() noexcept { return &memory_error; }

muster_error* refusal(std::string_view operation, std::string_view detail) noexcept {
  return made_here(ErrorCode::invalid_argument, operation, detail, Happened::no);
}

muster_error* unexpected(std::string_view operation, std::string_view what) noexcept {
  return made_here(ErrorCode::internal, operation, what, Happened::maybe);
}

}  // namespace muster::c

void muster_error_free(muster_error* error) {
  if (error == muster::c::out_of_memory()) return;
  delete static_cast<muster::c::OwnedError*>(error);
}
