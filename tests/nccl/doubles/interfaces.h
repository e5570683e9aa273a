#pragma once

namespace nccl_double {

/// Whether this machine has an interface that NCCL_SOCKET_IFNAME allows. A process looks once: what
/// it finds then holds for good.
bool has_interface();

}  // namespace nccl_double
