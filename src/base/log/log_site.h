// A place in the library that reports an event to the sink of the program.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>

#include <tambour/base/log.h>

namespace tambour::detail::base {

/// A static object of each place, because the rate is limited for each of them:
///
///   static constinit base::LogSite site(LogLevel::warning, "server", "accepting is paused");
///   site.write({{"error", error.message()}});
///
/// While no sink is set, write() costs one load, but the fields are computed: check is_enabled()
/// first if that is expensive. Callable from any thread.
class LogSite {
 public:
  static constexpr std::int64_t window_ns = 10'000'000'000;
  static constexpr unsigned records_max = 10;  ///< In a window.

  constexpr LogSite(LogLevel level, const char* component, const char* message) noexcept
      : component_(component), message_(message), level_(level) {}
  LogSite(const LogSite&) = delete;
  LogSite& operator=(const LogSite&) = delete;

  [[nodiscard]] static bool is_enabled() noexcept;
  void write(std::initializer_list<LogField> fields) noexcept;

 private:
  const char* component_;
  const char* message_;
  LogLevel level_;
  std::atomic<std::int64_t> window_began_ns_{-window_ns};
  std::atomic<unsigned> in_window_{0};
  std::atomic<std::uint64_t> suppressed_{0};
};

}  // namespace tambour::detail::base
