#include "nccl/gpu/rank.h"

#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <utility>

namespace muster::test::gpu {
namespace {

const std::string& setting(const std::map<std::string, std::string>& settings,
                           const std::string& name) {
  const auto found = settings.find(name);
  if (found == settings.end()) throw Failure("the argument " + name + "=... is missing");
  return found->second;
}

int setting_number(const std::map<std::string, std::string>& settings, const std::string& name) {
  return std::atoi(setting(settings, name).c_str());
}

Store connected(const std::string& address) {
  StoreOptions options;
  options.timeout = patience;
  return require(Store::connect(address, options, patience));
}

}  // namespace

void Times::add(Clock::duration time) {
  us_.push_back(std::chrono::duration<double, std::micro>(time).count());
}

double Times::at(double part) const {
  if (us_.empty()) return 0;
  std::vector<double> sorted = us_;
  std::sort(sorted.begin(), sorted.end());
  const auto last = sorted.size() - 1;
  return sorted[static_cast<std::size_t>(part * static_cast<double>(last))];
}

double ms_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

Rank::Rank(std::map<std::string, std::string> settings)
    : settings_(std::move(settings)),
      index_(setting_number(settings_, "rank")),
      size_(setting_number(settings_, "ranks")),
      device_(setting_number(settings_, "device")),
      until_(Clock::now() + std::chrono::seconds(setting_number(settings_, "seconds"))),
      driver_(load_driver(text("cuda"))),
      store_(connected(text("server"))) {}

const std::string& Rank::text(const std::string& name) const { return setting(settings_, name); }

long Rank::number(const std::string& name) const { return std::atol(text(name).c_str()); }

nccl::Mode Rank::mode() const {
  return text("mode") == "blocking" ? nccl::Mode::blocking : nccl::Mode::nonblocking;
}

StatelessProcessGroup Rank::join(const std::string& name, int rank, int size) {
  GroupOptions options;
  options.timeout = patience;
  return require(StatelessProcessGroup::create(store_, name, rank, size, options));
}

nccl::Options Rank::options() const {
  nccl::Options options;
  options.timeout = patience;
  options.mode = mode();
  options.nccl_library = text("nccl");
  options.cuda_library = text("cuda");
  return options;
}

Communicator Rank::create(StatelessProcessGroup& group, const nccl::Options& options) {
  return require(nccl::create(group, device_, options));
}

void Rank::expect(bool holds, const std::string& what) {
  if (holds) return;
  holds_ = false;
  std::cout << "fails|" << what << std::endl;
}

void Rank::note(const std::string& what) const {
  std::cerr << "rank " << index_ << ": " << what << std::endl;
}

void Rank::figure(const std::string& name, double value, const std::string& unit) {
  constexpr int digits = 12;  // bytes in full
  std::cout << "figure|" << name << '|' << std::setprecision(digits) << value << '|' << unit
            << std::endl;
}

long Rank::agreed(long number) {
  const std::string key = "agreement " + std::to_string(agreements_++);
  if (index_ == 0) {
    require(store_.set(key, std::to_string(number)));
    return number;
  }
  return std::atol(require(store_.get(key, patience)).c_str());
}

bool Rank::has_more(bool is_wanted) {
  const bool is_late = Clock::now() >= until_;
  note("time " + std::to_string(++times_));
  if (is_wanted && is_late && index_ == 0) std::cout << "short|" << std::endl;
  return agreed(is_wanted && !is_late ? 1 : 0) == 1;
}

}  // namespace muster::test::gpu
