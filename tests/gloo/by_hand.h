#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "communicator/messages.h"
#include "gloo/creation.h"
#include "muster/codec.h"
#include "muster/process_group.h"

// A rank that takes part in the making of a communicator step by step, and so may end it anywhere.

namespace muster::test {

/// It has said where it listens, and listens; it knows where the others do.
struct Answered {
  std::shared_ptr<gloo_internal::Mesh> mesh;
  std::vector<std::string> theirs;
};

/// address  where it listens; empty: as `create` does
inline Result<Answered> answer_roll(StatelessProcessGroup& group, Duration timeout,
                                    const std::string& address = {}) {
  const int rank = group.rank();
  const int world_size = group.world_size();
  gloo::Options options;
  options.address = address;
  const auto endpoint = gloo_internal::find_endpoint(options, group.store().address());
  if (!endpoint) return endpoint.error();
  auto mesh = gloo_internal::Mesh::open(*endpoint, rank, world_size);
  if (!mesh) return mesh.error();
  const auto all = group.all_gather_bytes(encode(gloo_internal::present(group, *endpoint, **mesh)),
                                          codec_id::gloo_communicator, timeout);
  if (!all) return all.error();
  Answered answered{*std::move(mesh), {}};
  for (const std::string& bytes : *all) {
    const auto report = gloo_internal::decode_preflight(bytes, world_size);
    if (!report) return report.error();
    const auto& addresses = report->addresses;
    answered.theirs.push_back(addresses.empty() ? "" : addresses[static_cast<std::size_t>(rank)]);
  }
  return answered;
}

/// Connects to the first `count` ranks only.
inline Result<void> connect_to(const Answered& answered, std::size_t count) {
  return answered.mesh->connect(
      {answered.theirs.begin(), answered.theirs.begin() + static_cast<std::ptrdiff_t>(count)});
}

/// Says in the last round that it has all connections, or what its trouble is.
inline Result<void> vote(StatelessProcessGroup& group, Duration timeout,
                         const std::optional<Error>& failure = std::nullopt) {
  const auto all = group.all_gather_bytes(communicator::encode_vote(failure),
                                          codec_id::gloo_communicator, timeout);
  return all ? Result<void>() : Result<void>(all.error());
}

}  // namespace muster::test
