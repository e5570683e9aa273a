#pragma once

#include <string_view>

#include "muster/result.h"
#include "server/http/table.h"
#include "server/http/tokens.h"

namespace muster::server::http {

/// The functions of libmuster-http, which is loaded at the first call: beside this program, else
/// from where the system looks.
///
/// errors   unsupported (`detail`: why it is not there, and what to do)
/// threads  any
Result<const Table*> table();

/// errors  as `table`
Result<Digest> digest_of(std::string_view bytes);

}  // namespace muster::server::http
