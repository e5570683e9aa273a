#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/job.h"
#include "script.h"

namespace muster::script {

/// One launcher's state machine, to which a script tells what the rim would.
class JobRunner : public Runner {
 public:
  std::vector<Line> run(const Step& step, const std::string& actor) override;

 private:
  void begin(Arguments& words);
  std::vector<Line> tell(const launch::Event& event);
  std::vector<Line> pass(Duration time);

  std::optional<launch::Job> job_;
  launch::Instant now_{};
};

}  // namespace muster::script
