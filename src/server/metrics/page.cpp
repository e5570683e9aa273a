#include "server/metrics/page.h"

#include <utility>

namespace muster::server {
namespace {

std::string_view type_name(MetricType type, MetricsFormat format) {
  switch (type) {
    case MetricType::counter: return "counter";
    case MetricType::histogram: return "histogram";
    case MetricType::info: return format == MetricsFormat::openmetrics ? "info" : "gauge";
    case MetricType::gauge: break;
  }
  return "gauge";
}

/// In label values, and in texts that are allowed to have quotes anyway.
void append_escaped(std::string& text, std::string_view value) {
  for (const char each : value) {
    if (each == '\n') {
      text += "\\n";
      continue;
    }
    if (each == '\\' || each == '"') text += '\\';
    text += each;
  }
}

}  // namespace

/// A decimal number that is exact, with a point.
std::string MetricsPage::seconds(std::uint64_t us) {
  std::string text = std::to_string(us / 1'000'000) + ".";
  std::string fraction = std::to_string(1'000'000 + us % 1'000'000);
  while (fraction.size() > 2 && fraction.back() == '0') fraction.pop_back();
  return text.append(fraction, 1);
}

std::string_view MetricsPage::suffix_of_sample() const {
  if (family_.type == MetricType::counter) return "_total";
  return family_.type == MetricType::info ? "_info" : "";
}

void MetricsPage::begin(const MetricFamily& family) {
  family_ = family;
  describe("TYPE", type_name(family.type, format_));
  if (format_ == MetricsFormat::openmetrics && !family.unit.empty()) describe("UNIT", family.unit);
  describe("HELP", family.help);
}

/// In the older format a family has the name of its samples.
void MetricsPage::describe(std::string_view what, std::string_view text) {
  text_.append("# ").append(what).append(" ").append(family_.name);
  if (format_ == MetricsFormat::prometheus) text_ += suffix_of_sample();
  text_.append(" ").append(text).append("\n");
}

void MetricsPage::add(std::string_view suffix, MetricLabels labels, std::string_view end,
                      std::string_view value) {
  text_.append(family_.name).append(suffix);
  char separator = '{';
  const auto append_label = [&](std::string_view name, std::string_view label) {
    text_ += std::exchange(separator, ',');
    text_.append(name).append("=\"");
    append_escaped(text_, label);
    text_ += '"';
  };
  for (const MetricLabel& label : labels) append_label(label.name, label.value);
  if (!end.empty()) append_label("le", end);
  if (separator == ',') text_ += '}';
  text_.append(" ").append(value).append("\n");
}

std::string MetricsPage::text() && {
  if (format_ == MetricsFormat::openmetrics) text_ += "# EOF\n";
  return std::move(text_);
}

}  // namespace muster::server
