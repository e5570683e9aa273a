#include "nccl/doubles/counts.h"

#include <mutex>

#include "nccl/doubles/exported.h"
#include "nccl/doubles/nccl_control.h"

namespace nccl_double {
namespace {

class Text {
 public:
  void set(const std::string& text) {
    const std::lock_guard lock(mutex_);
    text_ = text;
  }
  std::string get() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

// Never destroyed: threads may outlive the statics.
Text& error_text() {
  static auto* const text = new Text;
  return *text;
}
Text& mismatch_text() {
  static auto* const text = new Text;
  return *text;
}

}  // namespace

Counts& counts() {
  static auto* const one = new Counts;
  return *one;
}

void set_last_error(const std::string& text) { error_text().set(text); }

// What was given stays as it is until the same thread asks again.
const char* last_error() {
  thread_local std::string given;
  given = error_text().get();
  return given.c_str();
}

void set_last_mismatch(const std::string& text) { mismatch_text().set(text); }

const char* last_mismatch() {
  thread_local std::string given;
  given = mismatch_text().get();
  return given.c_str();
}

}  // namespace nccl_double

DOUBLE_EXPORT const char* nccl_double_last_mismatch() { return nccl_double::last_mismatch(); }

DOUBLE_EXPORT long nccl_double_count(const char* kind) {
  const nccl_double::Counts& all = nccl_double::counts();
  const std::string name = kind;
  if (name == "communicators") return all.communicators;
  if (name == "threads") return all.threads;
  if (name == "descriptors") return all.descriptors;
  if (name == "ids") return all.ids;
  if (name == "collectives") return all.collectives;
  if (name == "stuck") return all.stuck;
  if (name == "red_ops") return all.red_ops;
  if (name == "made_red_ops") return all.made_red_ops;
  if (name == "leaked_threads") return all.leaked_threads;
  if (name == "leaked_descriptors") return all.leaked_descriptors;
  return -1;
}
