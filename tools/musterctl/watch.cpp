#include "watch.h"

#include <signal.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <utility>

#include "ask.h"
#include "interrupts.h"
#include "keyboard.h"
#include "screen.h"

// A watch's life: connect -> ask, show, wait -> ... -> the server does not answer, or is another
// one: show that beside the last answer, and connect anew at the next repetition -> ... until
// Ctrl-C, or until nobody reads. What the server says of the thing itself (no such key, no such
// group) is an answer like any other: it may be there at the next repetition.

namespace musterctl {
namespace {

using muster::Duration;
using muster::ErrorCode;
using muster::Result;
using muster::Store;
using Clock = std::chrono::steady_clock;

class Watch {
 public:
  Watch(const Command& command, const Common& common)
      : command_(command), common_(common), screen_(start_keyboard()) {}

  /// Asks once. What cannot become better ends the watch: returns its exit code then.
  std::optional<int> repeat() {
    const auto began = Clock::now();
    Result<Answer> answer = answer_now();
    if (answer) {
      if (trouble_since_) note_ = "answered again at " + clock_text() + restart_text();
      trouble_since_.reset();
      last_ = *std::move(answer);
      last_time_ = clock_text();
      return common_.json ? write(line_of({"answer", last_.document})) : show(told(""));
    }
    const muster::Error& error = answer.error();
    if (error.code == ErrorCode::invalid_argument) {
      std::cerr << "musterctl: " << error.message() << '\n';
      return exit_usage;
    }
    store_.reset();
    if (!trouble_since_) trouble_since_ = began;
    Answer trouble = answer_of(error, Kind::reads);
    if (!common_.json) return show(told(trouble.complaint));
    trouble.document["error"]["for_s"] = seconds_of(trouble_age());
    return write(line_of({"error", trouble.document["error"]}));
  }

  /// To be polled for keys; -1: there are none.
  int keyboard() const { return keyboard_ ? keyboard_->descriptor() : -1; }

  /// Scrolls what is shown. Returns the exit code if that ends the watch.
  std::optional<int> take_keys() {
    switch (screen_.take(keyboard_->typed())) {
      case Screen::Typed::nothing: return std::nullopt;
      case Screen::Typed::end: return exit_ok;
      case Screen::Typed::moved: break;
    }
    return write(screen_.draw(shown_.head, shown_.body));
  }

 private:
  /// Returns whether somebody is there who types.
  bool start_keyboard() {
    if (is_screen_) keyboard_.emplace();
    return keyboard() >= 0;
  }

  Result<Answer> answer_now() {
    const Duration timeout = common_.timeout.value_or(std::chrono::seconds(2));
    if (!store_) {
      Result<Store> store = connect(common_, muster::Role::observer, Duration{0}, timeout);
      if (!store) return std::move(store).error();
      was_restarted_ = incarnation_ != 0 && incarnation_ != store->incarnation();
      incarnation_ = store->incarnation();
      store_.emplace(*std::move(store));
    }
    Result<Answer> answer = ask(command_, *store_, common_, timeout);
    if (!answer && answer.error().code == ErrorCode::not_found)
      return answer_of(answer.error(), Kind::reads);
    return answer;
  }

  std::string restart_text() const {
    return was_restarted_ ? ", by another server: what the old one held is gone" : "";
  }

  /// A line for programs.
  static std::string line_of(const std::pair<std::string, Json>& said) {
    return text_of(Json{{"time", utc_text()}, {said.first, said.second}}, -1);
  }

  Duration trouble_age() const {
    return std::chrono::duration_cast<Duration>(Clock::now() - *trouble_since_);
  }

  struct Told {
    std::string head;
    std::string body;
  };

  /// The last answer, and what is wrong since then.
  Told told(const std::string& trouble) const {
    Told told;
    std::string& text = told.head;
    if (is_screen_) {
      text = "every " + text_of(*common_.watch) + ", " + clock_text() + ", server " +
             printable(common_.server) + ", Ctrl-C ends\n";
    } else {
      text = date_text() + '\n';
    }
    if (!trouble.empty()) {
      text += "no answer for " + text_of(trouble_age()) + ", trying on: " + trouble + '\n';
      if (!is_screen_ || last_time_.empty()) return told;
      text += "\nthe last answer, of " + last_time_ + ":\n";
    } else if (!note_.empty()) {
      text += note_ + '\n';
    }
    if (is_screen_) text += '\n';
    told.body = last_.text;
    if (!last_.text.empty() && last_.text.back() != '\n') told.body += '\n';
    if (!last_.complaint.empty()) told.body += "musterctl: " + last_.complaint + '\n';
    return told;
  }

  std::optional<int> show(Told told) {
    constexpr const char* clear = "\x1b[2J";
    if (!is_screen_) {
      note_.clear();
      return write(told.head + told.body + '\n');
    }
    shown_ = std::move(told);
    const std::string text = screen_.draw(shown_.head, shown_.body);
    return write(std::exchange(is_first_, false) ? clear + text : text);
  }

  static std::optional<int> write(const std::string& text) {
    switch (write_out(text)) {
      case Written::all: return std::nullopt;
      case Written::nobody_reads: return exit_ok;
      case Written::failed: break;
    }
    std::cerr << "musterctl: cannot write to the standard output: " << std::strerror(errno) << '\n';
    return exit_refused;
  }

  const Command& command_;
  const Common& common_;
  const bool is_screen_ = !common_.json && is_screen();
  std::optional<Keyboard> keyboard_;
  Screen screen_;
  Told shown_;
  bool is_first_ = true;
  std::optional<Store> store_;
  std::uint64_t incarnation_ = 0;
  bool was_restarted_ = false;
  Answer last_;
  std::string last_time_;
  std::string note_;
  std::optional<Clock::time_point> trouble_since_;
};

}  // namespace

int watch(const Command& command, const Common& common) {
  ::signal(SIGPIPE, SIG_IGN);
  const Interrupts interrupts;
  Watch repeated(command, common);
  for (;;) {
    if (const auto exit_code = repeated.repeat()) return *exit_code;
    const auto until = Clock::now() + *common.watch;
    for (;;) {
      const auto event = interrupts.wait_until(until, repeated.keyboard());
      if (event == Interrupts::Event::time_is_over) break;
      if (event != Interrupts::Event::typed) return exit_ok;
      if (const auto exit_code = repeated.take_keys()) return *exit_code;
    }
  }
}

}  // namespace musterctl
