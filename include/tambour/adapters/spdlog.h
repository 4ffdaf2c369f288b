// The records of the library in a logger of spdlog.
//
// Header only: the program links spdlog. No layer of the library includes it.
//
//   static adapters::SpdlogSink sink(spdlog::default_logger());
//   set_log_sink(&sink);
#pragma once

#include <spdlog/logger.h>

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/base/log.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// Passes records on with their levels, as one line each in the format logfmt without the level. A
/// record for which there is no memory is dropped.
///
/// The sinks of the logger must not block: use an asynchronous logger
/// (spdlog/async.h, overflow policy overrun_oldest or discard_new), or the loops wait for the disk.
/// Ownership: shares the logger.
/// Thread: any, so the logger must have thread-safe sinks (..._mt).
class SpdlogSink final : public LogSink {
 public:
  /// Records go to `logger`, which must not be null.
  explicit SpdlogSink(std::shared_ptr<spdlog::logger> logger) noexcept
      : logger_(std::move(logger)) {}

  void write(const LogRecord& record) noexcept override {
    const spdlog::level::level_enum level = level_of(record.level);
    if (!logger_->should_log(level)) return;
    try {
      std::string line;
      append_log_line(line, record);
      const std::string_view text = std::string_view(line).substr(line.find("component="));
      logger_->log(level, spdlog::string_view_t(text.data(), text.size()));
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory.
    }
  }

 private:
  static spdlog::level::level_enum level_of(LogLevel level) noexcept {
    switch (level) {
      case LogLevel::info:
        return spdlog::level::info;
      case LogLevel::warning:
        return spdlog::level::warn;
      case LogLevel::error:
        break;
    }
    return spdlog::level::err;
  }

  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
