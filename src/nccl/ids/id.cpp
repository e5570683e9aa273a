#include "nccl/ids/id.h"

#include <cstdlib>

#include "client/failure.h"
#include "communicator/timed_call.h"
#include "nccl/functions.h"
#include "nccl/ids/bootstrap_socket.h"

namespace muster::nccl_internal {
namespace {

void give_up(const Result<nccl::UniqueId>& late) {
  if (late) nccl::give_up(*late);
}

}  // namespace

std::optional<Error> refusal_of_fixed_id() {
  if (std::getenv("NCCL_COMM_ID") == nullptr) return std::nullopt;
  return client::failure(ErrorCode::nccl,
                         "NCCL_COMM_ID is set, in the environment or in NCCL's configuration "
                         "file: every id would be the same; unset it");
}

Result<nccl::UniqueId> new_id(const nccl::Functions& nccl) {
  if (auto refused = refusal_of_fixed_id()) return *std::move(refused);
  nccl::UniqueId id{};
  const int result = nccl.get_unique_id(&id);
  if (result != 0) return nccl_error(nccl, result, "ncclGetUniqueId");
  set_close_on_exec(id);
  // Once more: NCCL has read its configuration files into the environment.
  if (auto refused = refusal_of_fixed_id()) {
    nccl::give_up(id);
    return *std::move(refused);
  }
  return id;
}

Result<nccl::UniqueId> make_id(const nccl::Functions& nccl, Duration timeout) {
  return communicator::call_with_timeout<nccl::UniqueId>(
      "ncclGetUniqueId", timeout, [nccl] { return new_id(nccl); }, give_up);
}

Result<nccl::UniqueId> make_id(const std::string& library, Duration timeout) {
  return communicator::call_with_timeout<nccl::UniqueId>(
      "libnccl", timeout,
      [library]() -> Result<nccl::UniqueId> {
        const auto nccl = load_nccl_for_ids(library);
        if (!nccl) return nccl.error();
        return new_id(*nccl);
      },
      give_up);
}

}  // namespace muster::nccl_internal
