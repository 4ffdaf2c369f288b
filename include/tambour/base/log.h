// What the library reports to operators: records of events such as a full server, a certificate
// that could not be loaded, or a DNS server that does not answer.
//
// The library writes no logs by itself. A program that sets a sink gets the records, and passes
// them to its own logger: see <tambour/adapters/spdlog.h>, <tambour/adapters/journald.h>,
// examples/file_log.cpp, and docs/observing.md for the list of records. Errors that a function
// returns or passes to a callback are not in the records.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <tambour/base/cxx23.h>
#include <tambour/base/result.h>

#pragma GCC visibility push(default)

namespace tambour {

/// How much a record matters.
enum class LogLevel : std::uint8_t {
  info,     ///< A change of state: a certificate was loaded, a server shuts down.
  warning,  ///< Something is slower or refused: a limit was reached, a server does not answer.
  error,    ///< Something failed: a handler threw, a certificate could not be loaded.
};

/// The name of a level: "info", "warning" or "error".
[[nodiscard]] std::string_view name_of(LogLevel level) noexcept;

/// A name and a value: a text or an integer. The texts belong to the caller of the sink.
class LogField {
 public:
  /// A text or an integer, which are not copied.
  constexpr LogField(std::string_view name, std::string_view text) noexcept
      : name_(name), text_(text), is_text_(true) {}
  constexpr LogField(std::string_view name, const char* text) noexcept
      : LogField(name, std::string_view(text)) {}
  template <std::integral I>
  constexpr LogField(std::string_view name, I number) noexcept
      : name_(name), number_(static_cast<std::int64_t>(number)) {}

  /// The name, in snake_case.
  [[nodiscard]] constexpr std::string_view name() const noexcept { return name_; }
  /// False for an integer.
  [[nodiscard]] constexpr bool is_text() const noexcept { return is_text_; }
  /// Empty if the value is a number.
  [[nodiscard]] constexpr std::string_view text() const noexcept { return text_; }
  /// Zero if the value is a text.
  [[nodiscard]] constexpr std::int64_t number() const noexcept { return number_; }

 private:
  std::string_view name_;
  std::string_view text_;
  std::int64_t number_ = 0;
  bool is_text_ = false;
};

/// A record of the log. It exists during the call of the sink.
struct LogRecord {
  LogLevel level = LogLevel::info;
  /// The part of the library: "server", "tls", "dns".
  std::string_view component;
  /// A constant sentence without values, by which records can be grouped.
  std::string_view message;
  std::span<const LogField> fields;
  /// The number of records with this message that were not reported since the last one: each
  /// message is reported at most 10 times in 10 seconds.
  std::uint64_t suppressed = 0;
};

/// Receives the records. A program derives from it.
class LogSink {
 public:
  LogSink() = default;
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;

  /// Called on the thread on which the event happened, possibly on several threads at once, and
  /// inside functions of the library: must not block, must not throw, and must not call functions
  /// of the object that the record is about. Parts of the texts may come from peers: write them so
  /// that they cannot forge lines, as append_log_line() does.
  virtual void write(const LogRecord& record) noexcept = 0;

 protected:
  ~LogSink() = default;
};

/// Makes `sink` receive all records of the process. Null, the default: none are written. Returns
/// the former sink. A sink must exist until no thread uses the library any more: another thread may
/// be calling it when it is replaced. Callable from any thread.
LogSink* set_log_sink(LogSink* sink) noexcept;

/// Appends the record in the format logfmt, without an end of line:
///
///   level=warning component=server message="accepting is paused" error="Too many open files"
///
/// Bytes that are not printable are replaced by '?'. Throws std::bad_alloc.
void append_log_line(std::string& to, const LogRecord& record);

}  // namespace tambour

#pragma GCC visibility pop
