// The trace of a simulation: a line per event, with its time, its source and what happened.
//
// Two runs with the same seed must produce the same text, so nothing in it may depend on addresses,
// the machine or the real clock.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/detail/namespaces.h>

namespace tambour::sim::detail {

class Trace {
 public:
  /// One line, completed by the destructor. Writes nothing if the trace is off.
  class Line {
   public:
    Line(Trace* trace, std::int64_t now_ns, std::string_view subject);
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;
    ~Line();

    Line& operator<<(std::string_view text) {
      if (trace_ != nullptr) trace_->text_.append(text);
      return *this;
    }
    template <std::integral Number>
      requires(!std::same_as<Number, bool>)
    Line& operator<<(Number number) {
      if (trace_ != nullptr) trace_->append_number(std::int64_t(number));
      return *this;
    }

   private:
    Trace* trace_;
  };

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  void set_tracer(Callback<void(std::string_view)> tracer) noexcept { tracer_ = std::move(tracer); }

 private:
  void append_number(std::int64_t number);
  void append_time(std::int64_t now_ns);

  std::string text_;
  Callback<void(std::string_view)> tracer_;
};

}  // namespace tambour::sim::detail
