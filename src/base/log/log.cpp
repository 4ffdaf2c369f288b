// The sink of records, the rate limit of each place that reports, and the format logfmt.
#include <tambour/base/log.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log/log_site.h"

namespace tambour {
namespace {

constinit std::atomic<LogSink*> log_sink{nullptr};

void append_value(std::string& to, std::string_view text) {
  const bool is_plain = !text.empty() && std::ranges::all_of(text, [](char byte) {
    return byte > ' ' && byte <= '~' && byte != '"' && byte != '=' && byte != '\\';
  });
  if (is_plain) {
    to += text;
    return;
  }
  to += '"';
  for (const char byte : text) {
    if (byte == '"' || byte == '\\') to += '\\';
    to += byte >= ' ' && byte <= '~' ? byte : '?';
  }
  to += '"';
}

}  // namespace

std::string_view name_of(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      break;
  }
  return "error";
}

LogSink* set_log_sink(LogSink* sink) noexcept {
  return log_sink.exchange(sink, std::memory_order_acq_rel);
}

void append_log_line(std::string& to, const LogRecord& record) {
  to += "level=";
  to += name_of(record.level);
  to += " component=";
  to += record.component;
  to += " message=";
  append_value(to, record.message);
  for (const LogField& field : record.fields) {
    to += ' ';
    to += field.name();
    to += '=';
    if (field.is_text()) {
      append_value(to, field.text());
    } else {
      to += std::to_string(field.number());
    }
  }
  if (record.suppressed == 0) return;
  to += " suppressed=";
  to += std::to_string(record.suppressed);
}

namespace detail::base {

bool LogSite::is_enabled() noexcept { return log_sink.load(std::memory_order_relaxed) != nullptr; }

void LogSite::write(std::initializer_list<LogField> fields) noexcept {
  LogSink* const sink = log_sink.load(std::memory_order_acquire);
  if (sink == nullptr) return;
  const std::int64_t now_ns = monotonic_ns();
  std::int64_t began_ns = window_began_ns_.load(std::memory_order_relaxed);
  if (now_ns - began_ns >= window_ns &&
      window_began_ns_.compare_exchange_strong(began_ns, now_ns, std::memory_order_relaxed))
    in_window_.store(0, std::memory_order_relaxed);
  if (in_window_.fetch_add(1, std::memory_order_relaxed) >= records_max) {
    suppressed_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  sink->write({.level = level_,
               .component = component_,
               .message = message_,
               .fields = {fields.begin(), fields.size()},
               .suppressed = suppressed_.exchange(0, std::memory_order_relaxed)});
}

}  // namespace detail::base

}  // namespace tambour
