// Formats the lines of the trace.
#include "sim/trace.h"

#include <array>
#include <charconv>

#include "base/clock.h"

namespace tambour::sim::detail {

Trace::Line::Line(Trace* trace, std::int64_t now_ns, std::string_view subject) : trace_(trace) {
  if (trace_ == nullptr) return;
  trace_->append_time(now_ns);
  trace_->text_ += ' ';
  trace_->text_.append(subject);
  trace_->text_ += ' ';
}

Trace::Line::~Line() {
  if (trace_ == nullptr) return;
  trace_->text_ += '\n';
  if (!trace_->tracer_) return;
  // The tracer may add trace lines itself.
  const std::string line = std::exchange(trace_->text_, {});
  trace_->tracer_(line);
}

void Trace::append_number(std::int64_t number) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), number);
  text_.append(digits.data(), end.ptr);
}

void Trace::append_time(std::int64_t now_ns) {
  append_number(now_ns / base::ns_per_s);
  std::array<char, 10> fraction;
  fraction[0] = '.';
  std::int64_t rest = now_ns % base::ns_per_s;
  for (std::size_t i = fraction.size() - 1; i > 0; --i) {
    fraction[i] = char('0' + rest % 10);
    rest /= 10;
  }
  text_.append(fraction.data(), fraction.size());
}

}  // namespace tambour::sim::detail
