#pragma once

#include <memory>
#include <string>
#include <vector>

#include "communicator/making.h"
#include "gloo/communicator_impl.h"
#include "gloo/presence.h"

namespace muster::gloo {

/// What a rank that can take part says.
Presence present(const StatelessProcessGroup& group, const Endpoint& endpoint, const Mesh& mesh);

/// One making of a communicator, on one rank.
///
/// Life cycle: prepare (address, sockets) -> the roll is called: who cannot, differs or cannot be
/// reached ends it for all before anybody connects; it also tells the addresses -> connect ->
/// every rank reports: all have it, or none keeps it.
class Formation {
 public:
  Formation(StatelessProcessGroup& group, GlooOptions options);

  Result<std::shared_ptr<GlooCommunicator::Impl>> run();

 private:
  using Impl = GlooCommunicator::Impl;

  /// What this rank brings.
  struct Ground {
    Endpoint endpoint;
    std::shared_ptr<Mesh> mesh;
  };

  Result<Ground> prepare() const;
  Result<std::vector<Presence>> call_roll(const Result<Ground>& ground) const;
  Result<void> enter(Impl& impl, const std::shared_ptr<Mesh>& mesh,
                     const std::vector<Presence>& presences) const;
  Result<void> connect(Impl& impl, const std::shared_ptr<Mesh>& mesh,
                       std::vector<std::string> theirs) const;

  const communicator::Making making_;
  const GlooOptions options_;
};

}  // namespace muster::gloo
