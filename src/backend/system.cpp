#include "backend/system.h"

#include <unistd.h>

namespace tambour::backend {
namespace {

struct Kernel {
  static constexpr auto socket = ::socket;
  static constexpr auto socketpair = ::socketpair;
  static constexpr auto close = ::close;
  static constexpr auto bind = ::bind;
  static constexpr auto listen = ::listen;
  static constexpr auto accept4 = ::accept4;
  static constexpr auto connect = ::connect;
  static constexpr auto shutdown = ::shutdown;
  static constexpr auto read = ::read;
  static constexpr auto write = ::write;
  static constexpr auto recv = ::recv;
  static constexpr auto send = ::send;
  static constexpr auto recvmsg = ::recvmsg;
  static constexpr auto sendmsg = ::sendmsg;
  static constexpr auto getsockopt = ::getsockopt;
  static constexpr auto setsockopt = ::setsockopt;
  static constexpr auto getsockname = ::getsockname;
  static constexpr auto getpeername = ::getpeername;
  static constexpr auto unlink = ::unlink;
};

}  // namespace

System& kernel() noexcept {
  static Kernel functions;
  static SystemOf<Kernel> system(functions);
  return system;
}

}  // namespace tambour::backend
