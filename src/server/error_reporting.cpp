// Counts the exceptions of a server, and passes them to on_error or writes them to standard error.
#include "server/error_reporting.h"

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <span>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "base/clock.h"
#include "base/log/log_site.h"

namespace tambour::detail::server {
namespace {

/// Lines on standard error, of all servers of the process: a client that can make a handler throw
/// must not be able to fill a disk.
class StandardError {
 public:
  static constexpr unsigned lines_max = 10;  ///< A second.

  void write(std::string_view line) noexcept {
    const std::int64_t now_ns = base::monotonic_ns();
    const std::lock_guard lock(mutex_);
    if (now_ns - second_began_ns_ >= base::ns_per_s) {
      second_began_ns_ = now_ns;
      lines_ = 0;
      if (const std::uint64_t suppressed = std::exchange(suppressed_, 0); suppressed > 0)
        std::fprintf(stderr, "tambour: %llu more exceptions of handlers were not written\n",
                     static_cast<unsigned long long>(suppressed));
    }
    if (lines_ >= lines_max) {
      ++suppressed_;
      return;
    }
    ++lines_;
    std::fwrite(line.data(), 1, line.size(), stderr);
  }

 private:
  std::mutex mutex_;
  std::int64_t second_began_ns_ = 0;
  unsigned lines_ = 0;
  std::uint64_t suppressed_ = 0;
};

constinit StandardError standard_error;

/// Clients may determine parts of the text, which must not forge lines or control a terminal.
void append_printable(std::span<char>& left, std::string_view text) noexcept {
  const std::size_t size = std::min(left.size(), text.size());
  std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size), left.begin(),
                 [](char byte) { return byte >= ' ' && byte <= '~' ? byte : '?'; });
  left = left.subspan(size);
}

void append_type(std::span<char>& left, const std::type_info* type) noexcept {
  if (type == nullptr) return;
  int status = 0;
  char* const name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  append_printable(left, name != nullptr ? name : type->name());
  std::free(name);
}

/// Writes the line for the exception.
void write_line(const std::optional<Endpoint>& endpoint,
                const std::exception_ptr& thrown) noexcept {
  std::array<char, 512> line;
  std::span<char> left(line.data(), line.size() - 1);
  append_printable(left, "tambour: a handler or callback of the server");
  try {
    if (endpoint) append_printable(left, " at " + endpoint->to_string());
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): without the address.
  }
  append_printable(left, " has thrown ");
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& exception) {
    append_type(left, &typeid(exception));
    append_printable(left, ": ");
    append_printable(left, exception.what());
  } catch (...) {
    append_type(left, abi::__cxa_current_exception_type());
  }
  append_printable(left, "; set on_error to handle it");
  left.data()[0] = '\n';
  standard_error.write({line.data(), static_cast<std::size_t>(left.data() - line.data()) + 1});
}

void log_exception(const std::optional<Endpoint>& endpoint,
                   const std::exception_ptr& thrown) noexcept {
  static constinit base::LogSite site(LogLevel::error, "server", "a handler has thrown");
  if (!base::LogSite::is_enabled()) return;
  try {
    const std::string server = endpoint ? endpoint->to_string() : std::string();
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& exception) {
      site.write({{"server", server}, {"exception", exception.what()}});
    } catch (...) {
      site.write({{"server", server}, {"exception", "of an unknown type"}});
    }
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted.
  }
}

}  // namespace

void ErrorReporter::report_or_throw(std::exception_ptr thrown) {
  add_to_count();
  log_exception(endpoint_, thrown);
  if (!on_error_) return write_line(endpoint_, thrown);
  on_error_(std::move(thrown));
}

void ErrorReporter::report(loop::Core& core, std::exception_ptr thrown) noexcept {
  try {
    report_or_throw(std::move(thrown));
  } catch (...) {
    core.throw_out_of_run(std::current_exception());
  }
}

void ErrorReporter::report_listener(loop::Core& core, std::exception_ptr thrown) noexcept {
  if (!on_error_) return core.throw_out_of_run(std::move(thrown));
  try {
    on_error_(std::move(thrown));
  } catch (...) {
    core.throw_out_of_run(std::current_exception());
  }
}

std::shared_ptr<const ConnectionCallbacks> share_callbacks(
    ConnectionCallbacks callbacks, const std::shared_ptr<ErrorReporter>& reporter) {
  if (callbacks.on_exception) {
    callbacks.on_exception = [reporter,
                              call = std::move(callbacks.on_exception)](std::exception_ptr thrown) {
      reporter->add_to_count();
      call(std::move(thrown));
    };
  } else {
    callbacks.on_exception = [reporter](std::exception_ptr thrown) {
      reporter->report_or_throw(std::move(thrown));
    };
  }
  return std::make_shared<const ConnectionCallbacks>(std::move(callbacks));
}

}  // namespace tambour::detail::server
