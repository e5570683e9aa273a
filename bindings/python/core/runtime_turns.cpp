#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "arguments.h"
#include "aside.h"
#include "bind.h"
#include "callbacks.h"
#include "calls.h"
#include "muster/codec_raw.h"
#include "muster/signal_file.h"
#include "muster/turns.h"
#include "runtime.h"

// A scope of Python's, as a work of turns.h: the call runs on a thread of its own, whose work only
// waits for the end of the body, which the thread that called runs. So the body may do what it
// likes, also hold the GIL; and the call goes on meanwhile with what it has to tell the others.

namespace muster::python {

namespace {

/// Thrown where the body of a scope has failed; the others are told its text.
class BodyFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace

/// One `with`, on one rank.
class Scope {
 public:
  /// progress  null: nobody waits for it
  using Work = std::function<void(Progress* progress)>;
  /// A function of turns.h or signal_file.h, with everything but the work.
  using Call = std::function<Result<void>(const Work& work)>;

  explicit Scope(Call call) : call_(std::move(call)) {}

  /// Until the body is to begin.
  void enter();
  /// failure  what the body has raised, as text; none: it has ended well
  void leave(const std::optional<std::string>& failure);
  void tell(const Told& told);

 private:
  void run();
  void run_work(Progress* progress);
  void wait(Waiting& waiting, const bool& is_there);
  /// Raises what the wait has come to, unless all is well.
  void settle(Waiting& waiting);

  const Call call_;
  bool is_begun_ = false;  // of the thread that called
  // Guarded by the mutex of aside_.
  bool is_inside_ = false;
  bool is_left_ = false;
  std::optional<std::string> failure_;
  Progress* progress_ = nullptr;
  std::optional<Error> error_;

  Aside aside_;  // last: its end waits for its thread, which uses the others
};

void Scope::run() {
  try {
    auto result = call_([this](Progress* progress) { run_work(progress); });
    if (!result) error_ = std::move(result).error();
  } catch (const BodyFailed&) {
    // Its exception goes its own way.
  }
}

void Scope::run_work(Progress* progress) {
  aside_.change([&] {
    progress_ = progress;
    is_inside_ = true;
  });
  const bool is_left = aside_.await_in_call([this] { return is_left_; });
  std::optional<std::string> failure = is_left ? failure_ : std::string("it was given up");
  aside_.change([this] { progress_ = nullptr; });
  if (failure) throw BodyFailed(*failure);
}

void Scope::wait(Waiting& waiting, const bool& is_there) {
  waiting.run([&] { aside_.wait([&] { return is_there; }, [] {}); });
}

void Scope::settle(Waiting& waiting) {
  if (waiting.is_interrupted()) waiting.raise(error_ ? &*error_ : nullptr, py::none());
  if (error_) raise(*error_);
}

void Scope::enter() {
  if (is_begun_) throw std::runtime_error("a scope is entered once: make another one");
  is_begun_ = true;
  Waiting waiting;
  aside_.start([this] { run(); });
  wait(waiting, is_inside_);
  if (!waiting.is_interrupted() && !aside_.is_over()) return;
  if (waiting.is_interrupted()) {
    const WithoutGil released;
    aside_.wait([] { return false; }, [] {});  // its work ends, since it was cancelled
  }
  settle(waiting);
}

void Scope::leave(const std::optional<std::string>& failure) {
  if (!is_begun_) throw std::runtime_error("the scope was not entered");
  aside_.change([&] {
    failure_ = failure;
    is_left_ = true;
  });
  Waiting waiting;
  const bool never = false;
  wait(waiting, never);
  if (failure && !waiting.is_interrupted()) return;  // the body's exception says it
  settle(waiting);
}

void Scope::tell(const Told& told) {
  const WithoutGil released;
  aside_.change([&] {
    if (progress_ != nullptr) (*progress_)(told.text);
  });
}

std::string text_of_raised(const py::error_already_set& raised) {
  const py::object told = py::module_::import("muster.runtime.turns").attr("told_text");
  return Told::of(told(raised.value())).text;
}

Told Told::of(py::handle text, std::string_view argument) {
  if (PyUnicode_Check(text.ptr()) == 0) refuse_type(text, argument, "a str");
  PyObject* const bytes = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "replace");
  if (bytes == nullptr) throw py::error_already_set();
  return {std::string(py::reinterpret_steal<py::bytes>(bytes))};
}

void Refusal::keep(const py::error_already_set& raised) {
  if (!raised.matches(PyExc_Exception)) throw py::error_already_set(raised);
  if (!raised_) raised_ = raised;
}

std::string Refusal::reason() const {
  if (!raised_) return {};
  const py::object own = py::module_::import("muster.errors").attr("MusterError");
  std::string detail;
  if (raised_->matches(own)) detail = Told::of(raised_->value().attr("detail")).text;
  return detail.empty() ? text_of_raised(*raised_) : detail;
}

std::string PythonWork::run(Progress& progress) {
  const WithGil held;
  if (!held) throw Raised("the interpreter ends");
  const auto handle = std::make_shared<ProgressHandle>(progress);
  try {
    const py::object given = call_python(work_, py::make_tuple(handle));
    handle->end();
    if (given.is_none()) return {};
    return std::string(std::string_view(Bytes::of(given, "what the work gives")));
  } catch (const py::error_already_set& raised) {
    handle->end();
    raised_ = raised;
    throw Raised(text_of_raised(raised));
  }
}

void PythonWork::raise_again() {
  if (!raised_) return;
  const py::error_already_set raised = *std::move(raised_);
  raised_.reset();
  throw raised;
}

TurnOptions turn_options_of(const py::tuple& given) {
  TurnOptions options;
  options.silence_max = duration_of(given[0], "silence_max", options.silence_max);
  options.limit = duration_of(given[1], "limit", options.limit);
  if (given.size() > 2)
    options.arrival_max = duration_of(given[2], "arrival_max", options.arrival_max);
  return options;
}

namespace {

struct SignalFolderHandle {
  std::shared_ptr<SignalFolder> folder;
};

py::object run_on_rank_zero(const RanksHandle& self, const py::object& given,
                            const py::tuple& options) {
  const TurnOptions turn = turn_options_of(options);
  RankGroup& ranks = self.object();
  PythonWork work(given);
  return block_with_work(
      [&] {
        return on_rank_zero<RawCodec>(
            ranks, [&](Progress& progress) { return work.run(progress); }, turn);
      },
      [](const std::string& bytes) { return bytes_of(bytes); }, [&] { work.raise_again(); });
}

using ScopePointer = std::shared_ptr<Scope>;

ScopePointer make_scope(Scope::Call call) {
  return shared_of(std::make_unique<Scope>(std::move(call)));
}

/// A function of turns.h as one of a scope, which keeps the ranks.
template <class Function>
ScopePointer scope_of_ranks(const RanksHandle& self, const Function& function) {
  RankGroup* const ranks = &self.object();
  return make_scope([kept = self, ranks, function](const Scope::Work& work) -> Result<void> {
    return function(*ranks, work);
  });
}

/// Elsewhere the body runs when that of rank 0 has ended.
ScopePointer rank_zero(const RanksHandle& self, const py::tuple& options) {
  const TurnOptions turn = turn_options_of(options);
  return scope_of_ranks(self, [turn](RankGroup& ranks, const Scope::Work& work) -> Result<void> {
    bool has_run = false;
    auto done = on_rank_zero<RawCodec>(
        ranks,
        [&](Progress& progress) {
          has_run = true;
          work(&progress);
        },
        turn);
    if (done && !has_run) work(nullptr);
    return done;
  });
}

ScopePointer one_of_n(const RanksHandle& self, Whole<int> count, const py::tuple& options) {
  const TurnOptions turn = turn_options_of(options);
  return scope_of_ranks(self, [turn, count](RankGroup& ranks, const Scope::Work& work) {
    return n_at_a_time(
        ranks, count, [&](Progress& progress) { work(&progress); }, turn);
  });
}

ScopePointer local_first(const RanksHandle& self, const py::tuple& options) {
  const TurnOptions turn = turn_options_of(options);
  return scope_of_ranks(self, [turn](RankGroup& ranks, const Scope::Work& work) {
    return local_rank_zero_first(
        ranks, [&](Progress& progress) { work(&progress); }, turn);
  });
}

ScopePointer fs_local_first(const RanksHandle& self, const py::tuple& options) {
  const TurnOptions turn = turn_options_of(options);
  return scope_of_ranks(self, [turn](RankGroup& ranks, const Scope::Work& work) {
    return fs_local_rank_zero_first(
        ranks, [&](Progress& progress) { work(&progress); }, turn);
  });
}

SignalFolderHandle open_folder(const std::string& folder, const Environment& environment,
                               const std::string& job, const std::string& attempt,
                               const py::object& logger) {
  SignalFolderOptions options;
  options.job = job;
  options.attempt = attempt;
  options.logger = logger_of(logger);
  const InCall call;
  auto opened = [&] {
    const WithoutGil released;
    return SignalFolder::open(folder, environment, options);
  }();
  if (!opened) raise(opened.error());
  return {shared(*std::move(opened))};
}

ScopePointer local_first_by_files(const SignalFolderHandle& self, const py::tuple& options) {
  return make_scope(
      [folder = self.folder, turn = turn_options_of(options)](const Scope::Work& work) {
        return local_rank_zero_first(
            *folder, [&](Progress& progress) { work(&progress); }, turn);
      });
}

ScopePointer fs_local_first_by_files(const SignalFolderHandle& self, const py::tuple& options) {
  return make_scope(
      [folder = self.folder, turn = turn_options_of(options)](const Scope::Work& work) {
        return fs_local_rank_zero_first(
            *folder, [&](Progress& progress) { work(&progress); }, turn);
      });
}

py::object signal_file_name(const RanksHandle& self, Timeout timeout) {
  RankGroup& ranks = self.object();
  return block([&] { return node_signal_file_name(ranks, timeout.duration); },
               [](const std::string& name) { return text_of(name); });
}

}  // namespace

void bind_turns(py::module_& module) {
  py::class_<ProgressHandle, std::shared_ptr<ProgressHandle>>(module, "Progress")
      .def("__call__", [](ProgressHandle& self, py::handle text) { self.tell(Told::of(text)); });
  py::class_<Scope, ScopePointer>(module, "Scope")
      .def("enter", &Scope::enter)
      .def("leave", &Scope::leave)
      .def("tell", [](Scope& self, py::handle text) { self.tell(Told::of(text)); });
  module.def("on_rank_zero", named(&run_on_rank_zero, "ranks", "work", "options"));
  module.def("rank_zero", named(&rank_zero, "ranks", "options"));
  module.def("n_at_a_time", named(&one_of_n, "ranks", "count", "options"));
  module.def("local_rank_zero_first", named(&local_first, "ranks", "options"));
  module.def("fs_local_rank_zero_first", named(&fs_local_first, "ranks", "options"));
  module.def("node_signal_file_name", named(&signal_file_name, "ranks", "timeout"));
  py::class_<SignalFolderHandle>(module, "SignalFolder")
      .def("folder", [](const SignalFolderHandle& self) { return text_of(self.folder->folder()); })
      .def("job", [](const SignalFolderHandle& self) { return text_of(self.folder->job()); })
      .def("local_rank_zero_first", &local_first_by_files)
      .def("fs_local_rank_zero_first", &fs_local_first_by_files);
  module.def("open_signal_folder",
             named(&open_folder, "folder", "environment", "job", "attempt", "logger"));
}

}  // namespace muster::python
