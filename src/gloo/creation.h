#pragma once

#include <memory>
#include <string>
#include <vector>

#include "communicator/agreement.h"
#include "communicator/failure_notice.h"
#include "gloo/communicator_impl.h"
#include "gloo/preflight.h"

namespace muster::gloo_internal {

/// The report of a rank that can take part.
PreflightReport present(const StatelessProcessGroup& group, const Endpoint& endpoint,
                        const Mesh& mesh);

/// The creation of one communicator, on one rank.
///
/// Life cycle: prepare (address, sockets) -> preflight: tells the addresses; a rank that cannot
/// take part, differs or cannot be reached ends it for all ranks before they connect -> connect ->
/// vote: all ranks keep the communicator, or none does.
class Creation {
 public:
  Creation(StatelessProcessGroup& group, gloo::Options options);

  Result<std::shared_ptr<Impl>> run();

 private:
  /// The resources that this rank has opened.
  struct Prepared {
    Endpoint endpoint;
    std::shared_ptr<Mesh> mesh;
  };

  Result<Prepared> prepare() const;
  Result<std::vector<PreflightReport>> run_preflight(const Result<Prepared>& prepared) const;
  Result<void> enter(Impl& impl, const std::shared_ptr<Mesh>& mesh,
                     const std::vector<PreflightReport>& reports,
                     communicator::FailureNotice& notice) const;
  Result<void> connect(Impl& impl, const std::shared_ptr<Mesh>& mesh,
                       std::vector<std::string> theirs, communicator::FailureNotice& notice) const;

  const communicator::Agreement agreement_;
  const gloo::Options options_;
};

}  // namespace muster::gloo_internal
