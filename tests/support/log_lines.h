// A sink that keeps the records of the library as lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/log.h>

namespace tambour::test {

class LogLines final : public LogSink {
 public:
  LogLines() : former_(set_log_sink(this)) {}
  ~LogLines() { set_log_sink(former_); }

  void write(const LogRecord& record) noexcept override {
    const std::lock_guard lock(mutex_);
    append_log_line(lines.emplace_back(), record);
    suppressed.push_back(record.suppressed);
  }
  /// True if a line contains the text.
  [[nodiscard]] bool has(std::string_view text) {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(
        lines, [text](const std::string& line) { return line.find(text) != std::string::npos; });
  }

  std::vector<std::string> lines;
  std::vector<std::uint64_t> suppressed;

 private:
  LogSink* former_;
  std::mutex mutex_;
};

}  // namespace tambour::test
