#include <cstring>

#include "calls.h"
#include "muster/nccl_id.h"

// Ids of NCCL communicators.

using muster::Duration;
using muster::c::guarded;
using muster::c::needed;
using muster::nccl::UniqueId;

namespace {

UniqueId id_of(const muster_nccl_id& given) {
  UniqueId id{};
  static_assert(sizeof(id) == sizeof(given));
  std::memcpy(id.data(), given.bytes, id.size());
  return id;
}

}  // namespace

muster_error* muster_nccl_unique_id(muster_group* group, int64_t timeout,
                                    const muster_nccl_id* given, const char* library,
                                    muster_nccl_id* id) {
  return guarded("unique_id", [&]() -> muster_error* {
    needed(id, "id");
    muster::nccl::IdOptions options;
    if (given != nullptr) options.id = id_of(*given);
    options.library = muster::c::text_or_none(library);
    const auto made =
        muster::nccl::unique_id(muster::c::group_of(group), Duration(timeout), std::move(options));
    if (!made) return muster::c::error_of(made.error());
    std::memcpy(id->bytes, made->data(), made->size());
    return nullptr;
  });
}

bool muster_nccl_give_up(const muster_nccl_id* id) {
  return muster::c::guarded_or(false,
                               [&] { return id != nullptr && muster::nccl::give_up(id_of(*id)); });
}
