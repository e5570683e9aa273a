#include "muster/result.h"

MUSTER_BEGIN_NAMESPACE

BadResult::BadResult(Error error) : error_(std::move(error)), message_(error_.message()) {}

// Out of line, so that the type's vtable and typeinfo live in the library alone and a handler in
// the host catches what the library threw.
BadResult::~BadResult() = default;

MUSTER_END_NAMESPACE
