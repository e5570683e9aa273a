#include "errors.h"

#include <cstdint>
#include <optional>
#include <string>

#include "gil.h"
#include "muster/detail/secret_text.h"

namespace muster::python {

namespace {

py::str name_text(std::string_view name) { return {name.data(), name.size()}; }

/// The name of a value; "" of the one that says nothing.
template <class T>
py::str name_unless(T nothing, T value) {
  return value == nothing ? py::str("") : name_text(name_of(value));
}

py::object report_of(const RankReport& report) {
  py::dict fields;
  fields["rank"] = report.rank;
  fields["joined"] = report.joined;
  fields["host"] = text_of(report.process.host);
  fields["pid"] = report.process.pid;
  fields["label"] = text_of(report.process.label);
  fields["process"] = py::str(to_string(report.process.id));
  fields["silence"] = seconds_of(report.silence);
  fields["called"] = text_of(report.called);
  fields["cause"] = name_unless(LossCause::none, report.cause);
  return fields;
}

py::object position_of(const std::optional<StreamPosition>& stream) {
  if (!stream) return py::none();
  return py::make_tuple(stream->source, stream->destination, stream->tag, stream->sequence);
}

py::dict fields_of(const Error& error) {
  py::dict fields;
  fields["code"] = name_text(name_of(error.code));
  fields["number"] = static_cast<int>(error.code);
  fields["message"] = text_of(error.message());
  fields["operation"] = text_of(error.operation);
  fields["group"] = text_of(error.group);
  fields["epoch"] = error.epoch;
  fields["round"] = error.round;
  fields["stream"] = position_of(error.stream);
  fields["elapsed"] = seconds_of(error.elapsed);
  fields["decided_by"] = text_of(error.decided_by);
  fields["decided_by_rank"] = error.decided_by_rank;
  fields["decided_by_timeout"] = seconds_of(error.decided_by_timeout);
  fields["where"] = text_of(error.where);
  py::list reports;
  for (const RankReport& report : error.ranks) reports.append(report_of(report));
  fields["ranks"] = reports;
  fields["rank_numbers"] = ranks_of(error.rank_ranges);
  fields["cause"] = name_unless(LossCause::none, error.cause);
  fields["expected"] = error.expected;
  fields["actual"] = error.actual;
  fields["limit"] = error.limit;
  fields["happened"] = name_unless(Happened::unsaid, error.happened);
  fields["detail"] = text_of(error.detail);
  return fields;
}

}  // namespace

py::str text_of(std::string_view text) {
  PyObject* const decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

py::object seconds_of(const std::optional<Duration>& duration) {
  if (!duration) return py::none();
  return py::float_(seconds_of(*duration));
}

py::list ranks_of(const std::vector<RankRange>& ranges) {
  // The ranges are what a server has said. More ranks than this no group has.
  constexpr std::size_t ranks_max = std::size_t{1} << 17U;
  py::list ranks;
  for (const RankRange range : ranges) {
    for (std::int64_t rank = range.first; rank <= range.last; ++rank) {
      if (ranks.size() == ranks_max) return ranks;
      ranks.append(rank);
    }
  }
  return ranks;
}

py::object process_of(const ProcessInfo& process) {
  py::dict fields;
  fields["id"] = py::str(to_string(process.id));
  fields["host"] = text_of(process.host);
  fields["pid"] = process.pid;
  fields["label"] = text_of(process.label);
  return fields;
}

py::object exception_of(const Error& error) {
  return py::module_::import("muster.errors").attr("_from_fields")(fields_of(error));
}

void raise(const Error& error) {
  leave_if_ending();
  const py::object exception = exception_of(error);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw py::error_already_set();
}

void refuse(std::string_view argument, std::string_view reason) {
  Error error;
  error.code = ErrorCode::invalid_argument;
  error.happened = Happened::no;
  error.decided_by = "client";
  error.detail = std::string(argument) + ": " + std::string(reason);
  raise(error);
}

void refuse_choice(std::string_view argument, std::string_view choices, std::string_view given) {
  std::string complaint = muster::detail::complaint_of_secret(argument, given);
  if (complaint.empty()) {
    complaint = argument;
    complaint.append(": ").append(choices).append("; not ").append(given);
  }
  throw py::value_error(complaint);
}

void raise_closed(std::string_view reason, std::string_view group) {
  Error error;
  error.code = ErrorCode::closed;
  error.happened = Happened::no;
  error.decided_by = "client";
  error.detail = reason;
  error.group = group;
  raise(error);
}

}  // namespace muster::python
