#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/environment.h"
#include "muster/mesh.h"
#include "runtime/layout.h"
#include "runtime_offers.h"
#include "script.h"

namespace muster::script {

/// The parts of the runtime that need no other process: the environment, the layout of a job,
/// meshes, the sampler, and what ranks tell each other of tensors.
class RuntimeRunner : public Runner {
 public:
  std::vector<Line> run(const Step& step, const std::string& actor) override;

 private:
  void read_environment(const Step& step);
  std::vector<Line> find(Arguments& words) const;
  std::vector<Line> number(Arguments& words) const;
  void tell(const Step& step);
  std::vector<Line> lay_out() const;
  std::vector<Line> make_mesh(Arguments& words);
  std::vector<Line> along(Arguments& words) const;

  Environment environment_;
  std::vector<runtime::Whereabouts> told_;
  std::optional<Mesh> mesh_;
  Offers offers_;
};

}  // namespace muster::script
