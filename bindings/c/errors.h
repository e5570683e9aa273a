#pragma once

#include <memory>
#include <string_view>

#include "muster/c.h"
#include "muster/error.h"

namespace muster::c {

/// To be freed by `muster_error_free`. If there is no memory for it: `out_of_memory()`.
muster_error* error_of(const Error& error) noexcept;

/// Says that there was no memory, and that the call may have happened: nobody knows which part of
/// it had none. It is always there, and never freed.
muster_error* out_of_memory() noexcept;

/// An argument breaks its rule; nothing was done.
muster_error* refusal(std::string_view operation, std::string_view detail) noexcept;

/// A defect: what was thrown.
muster_error* unexpected(std::string_view operation, std::string_view what) noexcept;

struct FreeError {
  void operator()(muster_error* error) const noexcept { muster_error_free(error); }
};
using ErrorPointer = std::unique_ptr<muster_error, FreeError>;

}  // namespace muster::c
