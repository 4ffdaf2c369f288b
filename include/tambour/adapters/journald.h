// The records of the library in the journal of systemd, with their fields.
//
// Header only, and without libsystemd: a record is one datagram of the journal's native protocol
// (https://systemd.io/JOURNAL_NATIVE_PROTOCOL/). No layer of the library includes this header.
//
//   static adapters::JournaldSink sink("my-service");
//   set_log_sink(&sink);
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/base/log.h>
#include <tambour/base/unique_fd.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// Sends each record with the fields PRIORITY, SYSLOG_IDENTIFIER, MESSAGE, TAMBOUR_COMPONENT and
/// one field for each of the record: TAMBOUR_ERROR of `error`, for example. The socket does not
/// block: records that the journal does not take, or that are larger than a datagram, are counted
/// as lost.
///
/// Thread: any.
class JournaldSink final : public LogSink {
 public:
  static constexpr std::string_view default_path = "/run/systemd/journal/socket";

  /// If the journal does not listen at `path`, all records are lost.
  explicit JournaldSink(std::string identifier, std::string_view path = default_path)
      : identifier_(std::move(identifier)),
        socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    address_.sun_family = AF_UNIX;
    path = path.substr(0, sizeof address_.sun_path - 1);
    std::ranges::copy(path, address_.sun_path);
  }

  void write(const LogRecord& record) noexcept override {
    try {
      const std::string datagram = format(record);
      if (::sendto(socket_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL,
                   reinterpret_cast<const sockaddr*>(&address_), sizeof address_) >= 0)
        return;
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory, counted below.
    }
    lost_.fetch_add(1, std::memory_order_relaxed);
  }

  /// The number of records that were lost. Any thread.
  [[nodiscard]] std::uint64_t lost() const noexcept {
    return lost_.load(std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] std::string format(const LogRecord& record) const {
    std::string datagram;
    append(datagram, "PRIORITY", priority_of(record.level));
    append(datagram, "SYSLOG_IDENTIFIER", identifier_);
    std::string line;
    append_log_line(line, record);
    append(datagram, "MESSAGE", std::string_view(line).substr(line.find("message=") + 8));
    append(datagram, "TAMBOUR_COMPONENT", record.component);
    for (const LogField& field : record.fields) {
      const std::string number = std::to_string(field.number());
      append(datagram, name_of_field(field.name()), field.is_text() ? field.text() : number);
    }
    if (record.suppressed != 0)
      append(datagram, "TAMBOUR_SUPPRESSED", std::to_string(record.suppressed));
    return datagram;
  }

  /// The binary form: the length is a little-endian 64-bit number, so the value may have any bytes.
  static void append(std::string& to, std::string_view name, std::string_view value) {
    to += name;
    to += '\n';
    std::uint64_t size = value.size();
    for (int i = 0; i < 8; ++i, size >>= 8U) to += static_cast<char>(size & 0xffU);
    to += value;
    to += '\n';
  }

  static std::string name_of_field(std::string_view name) {
    std::string upper = "TAMBOUR_";
    for (const char c : name) upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return upper;
  }

  /// syslog(3).
  static std::string_view priority_of(LogLevel level) noexcept {
    switch (level) {
      case LogLevel::info:
        return "6";
      case LogLevel::warning:
        return "4";
      case LogLevel::error:
        break;
    }
    return "3";
  }

  std::string identifier_;
  UniqueFd socket_;
  sockaddr_un address_{};
  std::atomic<std::uint64_t> lost_{0};
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
