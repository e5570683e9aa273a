#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "nccl/doubles/bootstrap.h"
#include "nccl/doubles/counts.h"
#include "nccl/doubles/exported.h"
#include "nccl/doubles/faults.h"
#include "nccl/doubles/group.h"
#include "nccl/doubles/initialize.h"
#include "nccl/doubles/interfaces.h"
#include "nccl/doubles/nccl_control.h"

// Of NCCL's interface: versions and texts, ids, and how a communicator begins and ends. Handles are
// pointers, ncclResult_t is an int.

using namespace nccl_double;

namespace {

std::atomic<int> refusal_of_ids{0};
std::atomic<void (*)()> before_ids{nullptr};

std::atomic<int>& version() {
  static std::atomic<int> number = [] {
    const char* const value = std::getenv("NCCL_DOUBLE_VERSION");
    return value == nullptr ? 22809 : std::atoi(value);
  }();
  return number;
}

/// Once in a process that asks for NCCL's log, where NCCL prints it.
void print_version() {
  static const bool is_printed = [] {
    if (std::getenv("NCCL_DEBUG") == nullptr) return false;
    std::printf("NCCL version %d, a double\n", version().load());
    return std::fflush(stdout) == 0;
  }();
  static_cast<void>(is_printed);
}

/// The same each time that NCCL is begun with in this process.
int refuse_without_interface() {
  set_last_error("Bootstrap : no socket interface found");
  return invalid_usage;
}

/// As NCCL checks them: the device first.
int initialize(void** handle, int rank_count, const UniqueId& id, int rank, const Config* config,
               OwnDevice own) {
  if (!has_interface()) return refuse_without_interface();
  print_version();
  const Blocking blocking = blocking_of(config, {});
  if (blocking.result != success) return blocking.result;
  if (handle == nullptr || rank_count < 1 || rank < 0 || rank >= rank_count) {
    set_last_error("Invalid rank requested : " + std::to_string(rank) + "/" +
                   std::to_string(rank_count));
    return invalid_argument;
  }
  const CallFault fault = fault_of_call(Phase::init, rank);
  if (fault.result != 0) return fault.result;
  if (rank == 0 && is_id_of_environment()) {
    if (const int result = start_root_of_environment(id)) return result;
  }
  const auto communicator = make_communicator(
      {rank, rank_count, std::move(own), blocking.is_blocking, place_of(id).magic});
  // Before it is waited for: another thread may look for it there, and abort it.
  std::atomic_ref<void*>(*handle).store(communicator.get());
  return do_job({communicator, [=] { return nccl_double::initialize(*communicator, id); }});
}

int refuse_without_device(const OwnDevice& own) {
  set_last_error("Cuda failure '" + own.error + "'");
  return unhandled_cuda_error;
}

template <class Work>
int with_communicator(const void* handle, const int* to, Work work) {
  const auto communicator = find_communicator(handle);
  if (communicator == nullptr || to == nullptr) return invalid_argument;
  const int refusal = communicator->refusal();
  return refusal == success ? work(*communicator) : refusal;
}

}  // namespace

namespace nccl_double {

Blocking blocking_of(const Config* config, Blocking otherwise) {
  if (config == nullptr) return otherwise;
  Config own{};
  std::memcpy(&own, config, std::min(config->size, sizeof own));
  if (own.magic != config_magic) {
    set_last_error("ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
    return {true, invalid_argument};
  }
  if (own.blocking == undefined_int) return otherwise;
  if (own.blocking != 0 && own.blocking != 1) {
    set_last_error("Invalid config blocking attribute value " + std::to_string(own.blocking));
    return {true, invalid_argument};
  }
  return {own.blocking == 1, success};
}

}  // namespace nccl_double

DOUBLE_EXPORT int ncclGetVersion(int* number) {
  if (number == nullptr) return invalid_argument;
  *number = version();
  return success;
}

DOUBLE_EXPORT int ncclGetUniqueId(UniqueId* id) {
  const CallFault fault = fault_of_call(Phase::get_unique_id);
  if (const auto action = before_ids.load()) action();
  const int refusal = refusal_of_ids != 0 ? refusal_of_ids.load() : fault.result;
  if (refusal != 0) {
    set_last_error("the double was told to refuse");
    return refusal;
  }
  if (!has_interface()) return refuse_without_interface();
  return id == nullptr ? static_cast<int>(invalid_argument) : make_unique_id(*id);
}

DOUBLE_EXPORT const char* ncclGetErrorString(int result) {
  switch (result) {
    case success: return "no error";
    case unhandled_cuda_error: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case system_error: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case internal_error: return "internal error - please report this issue to the NCCL developers";
    case invalid_argument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case invalid_usage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case remote_error: return "remote process exited or there was a network error";
    case in_progress: return "NCCL operation in progress";
    default: return "unknown result code";
  }
}

DOUBLE_EXPORT const char* ncclGetLastError(const void*) { return last_error(); }

// Without a device this leaves the group open that it has begun, as NCCL's does.
DOUBLE_EXPORT int ncclCommInitRankConfig(void** handle, int rank_count, UniqueId id, int rank,
                                         const Config* config) {
  start_group();
  OwnDevice own = own_device();
  if (!own.error.empty()) return refuse_without_device(own);
  const int result =
      refuse_in_group(initialize(handle, rank_count, id, rank, config, std::move(own)));
  const int ended = end_group();
  return ended == success ? result : ended;
}

DOUBLE_EXPORT int ncclCommInitRank(void** handle, int rank_count, UniqueId id, int rank) {
  OwnDevice own = own_device();
  if (!own.error.empty()) return refuse_without_device(own);
  return initialize(handle, rank_count, id, rank, nullptr, std::move(own));
}

DOUBLE_EXPORT int ncclCommGetAsyncError(const void* handle, int* result) {
  const auto communicator = find_communicator(handle);
  if (communicator == nullptr || result == nullptr || communicator->is_gone()) {
    return invalid_argument;
  }
  *result = communicator->result();
  return success;
}

DOUBLE_EXPORT int ncclCommAbort(void* handle) {
  const auto communicator = find_communicator(handle);
  if (communicator == nullptr) return success;
  const CallFault fault = fault_of_call(Phase::abort, communicator->place.rank);
  if (fault.result != 0) return fault.result;
  return communicator->abort() ? success : invalid_argument;
}

DOUBLE_EXPORT int ncclCommFinalize(void* handle) {
  const auto communicator = find_communicator(handle);
  if (communicator == nullptr) return success;
  int refusal = communicator->refusal();
  if (refusal == success && communicator->is_finalized()) refusal = invalid_argument;
  if (refusal != success) {
    if (!communicator->place.is_blocking) communicator->set_result(refusal);
    return refuse_in_group(refusal);
  }
  const CallFault fault = fault_of_call(Phase::finalize, communicator->place.rank);
  if (fault.result != 0) return fault.result;
  communicator->set_finalized();
  return do_job({communicator, [own = communicator.get()]() -> int {
                   const InsideFault inside =
                       fault_inside(Phase::finalize, own->place.rank, own->stop);
                   if (inside.is_forever) own->stop.wait();
                   return own->wait_for_operations() ? inside.result : internal_error;
                 }});
}

DOUBLE_EXPORT int ncclCommDestroy(void* handle) {
  const auto communicator = find_communicator(handle);
  if (communicator == nullptr) return success;
  if (const int result = communicator->refusal()) return result;
  const CallFault fault = fault_of_call(Phase::destroy, communicator->place.rank);
  if (fault.result != 0) return fault.result;
  return communicator->destroy() ? success : invalid_argument;
}

DOUBLE_EXPORT int ncclCommCount(const void* handle, int* count) {
  return with_communicator(handle, count, [&](const Communicator& own) {
    *count = own.place.rank_count;
    return success;
  });
}

DOUBLE_EXPORT int ncclCommUserRank(const void* handle, int* rank) {
  return with_communicator(handle, rank, [&](const Communicator& own) {
    *rank = own.place.rank;
    return success;
  });
}

DOUBLE_EXPORT int ncclCommCuDevice(const void* handle, int* device) {
  return with_communicator(handle, device, [&](const Communicator& own) {
    *device = own.place.own_device.device;
    return success;
  });
}

DOUBLE_EXPORT void nccl_double_refuse(int result) { refusal_of_ids = result; }

DOUBLE_EXPORT void nccl_double_before(void (*action)()) { before_ids = action; }

DOUBLE_EXPORT int nccl_double_waiting() { return static_cast<int>(counts().ids); }

DOUBLE_EXPORT void nccl_double_set_version(int number) { version() = number; }
