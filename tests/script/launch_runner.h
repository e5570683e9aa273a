#pragma once

#include <string>
#include <vector>

#include "launch/options.h"
#include "launch/rank_environment.h"
#include "script.h"

namespace muster::script {

/// What the launcher decides without starting anything: places, variables, names and arguments.
class LaunchRunner : public Runner {
 public:
  std::vector<Line> run(const Step& step, const std::string& actor) override;

 private:
  void read_options(const Step& step);
  std::vector<Line> place() const;
  std::vector<Line> tell_rank(const Step& step) const;
  std::vector<Line> name_logs(Arguments& words) const;
  std::vector<Line> lay_out_logs(Arguments& words) const;

  launch::LaunchOptions options_;
  launch::Variables inherited_;
};

}  // namespace muster::script
