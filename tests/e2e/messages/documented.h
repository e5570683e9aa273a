#pragma once

#include "muster/error.h"

namespace muster::test {

/// Compares an error that a call gave with its row of docs/errors.md: the fields that are always
/// set are set, and none is set that neither the row nor the text before the table names.
void check_documented(const Error& error);

/// Also that it is this error.
void check(const Error& error, ErrorCode code);

}  // namespace muster::test
