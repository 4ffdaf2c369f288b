// Counts handshakes, resumptions and errors, and why the kernel does not encrypt.
#include "tls/context/counters.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include <tambour/base/unique_fd.h>

namespace tambour::tls::detail {
namespace {

/// A kernel with TLS refuses it for a socket that is not connected, with ENOTCONN. One without, or
/// whose module cannot be loaded, fails with ENOENT.
std::string why_kernel_tls_is_unused() {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  constexpr std::string_view name = "tls";
  const int answer = socket.is_open() ? ::setsockopt(socket.get(), SOL_TCP, TCP_ULP, name.data(),
                                                     socklen_t(name.size()))
                                      : -1;
  if (answer == 0 || errno == ENOTCONN)
    return "the kernel supports it, but OpenSSL encrypts in user space: not all kernels can change "
           "the keys of a connection";
  return std::string("the kernel does not support it: TCP_ULP: ") + std::strerror(errno);
}

}  // namespace

void Counters::count(const tls::Session& session) noexcept {
  handshakes_.fetch_add(1, std::memory_order_relaxed);
  if (session.is_resumed()) resumed_.fetch_add(1, std::memory_order_relaxed);
  switch (session.early_data()) {
    case tls::EarlyData::none:
      break;
    case tls::EarlyData::accepted:
      early_data_accepted_.fetch_add(1, std::memory_order_relaxed);
      break;
    case tls::EarlyData::rejected:
      early_data_rejected_.fetch_add(1, std::memory_order_relaxed);
      break;
  }
}

tls::Stats Counters::stats() const {
  // The answer does not change, and statistics may be read often.
  static const std::string reason = why_kernel_tls_is_unused();
  return {.handshakes = handshakes_.load(std::memory_order_relaxed),
          .resumed = resumed_.load(std::memory_order_relaxed),
          .failed = failed_.load(std::memory_order_relaxed),
          .displaced = displaced_.load(std::memory_order_relaxed),
          .early_data_accepted = early_data_accepted_.load(std::memory_order_relaxed),
          .early_data_rejected = early_data_rejected_.load(std::memory_order_relaxed),
          .reloads = reloads_.load(std::memory_order_relaxed),
          .failed_reloads = failed_reloads_.load(std::memory_order_relaxed),
          .kernel_tls = false,
          .kernel_tls_reason = reason};
}

}  // namespace tambour::tls::detail
