// Each allocation of connect() fails once, and each with the two after it, while attempts to
// several addresses run at the same time.
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "backend/system.h"
#include "faults/allocations.h"
#include "net/socket_calls.h"
#include "support/on_every_backend.h"

namespace tambour::connecting_test {
namespace {

using namespace std::chrono_literals;

UniqueFd new_socket() {
  return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// A socket that listens.
class Listener {
 public:
  explicit Listener(int backlog) {
    const Endpoint any = Endpoint::loopback_v4(0);
    EXPECT_EQ(::bind(socket_.get(), any.data(), any.size()), 0);
    EXPECT_EQ(::listen(socket_.get(), backlog), 0);
    endpoint_ = detail::net::local_endpoint(detail::backend::kernel(), socket_.get()).value();
  }
  /// Opens more connections than the backlog: the kernel drops the packets of further ones.
  void fill() {
    for (UniqueFd& client : clients_) {
      client = new_socket();
      static_cast<void>(::connect(client.get(), endpoint_.data(), endpoint_.size()));
    }
  }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  /// Makes room for further connections.
  void close_accepted() const {
    while (UniqueFd(::accept(socket_.get(), nullptr, nullptr)).is_open()) continue;
  }

 private:
  UniqueFd socket_ = new_socket();
  Endpoint endpoint_;
  std::array<UniqueFd, 3> clients_;
};

class Connecting : public test::OnEveryBackend {
 protected:
  Connecting() { full_.fill(); }

  Task<> connect_within(Duration limit, std::string& result) {
    try {
      ConnectOptions options;
      options.timeout = limit;
      options.attempt_delay = 1ms;
      const auto connected = co_await connect(addresses_, options);
      result = connected ? "connected" : connected.error().message();
    } catch (const std::bad_alloc&) {
      result = "no memory";
    }
    loop().stop();
  }
  std::string connect_within(Duration limit) {
    std::string result;
    try {
      spawn(loop(), connect_within(limit, result));
    } catch (const std::bad_alloc&) {
      return "no memory";
    }
    EXPECT_NO_THROW(loop().run()) << "only the caller of connect() gets the exception";
    open_.close_accepted();
    other_.close_accepted();
    return result;
  }

  Listener full_{0};
  Listener open_{4000};
  Listener other_{4000};
  std::vector<Endpoint> addresses_{full_.endpoint(), open_.endpoint(), other_.endpoint()};
};

TAMBOUR_ON_EVERY_BACKEND(Connecting);

TEST_P(Connecting, allocations_may_fail_at_any_point) {
  ASSERT_EQ(connect_within(1min), "connected");
  test::refuse_each_allocation([this] { return connect_within(500ms); },
                               [this](const std::string& result) {
                                 // The attempt that does not end may be the only one that had
                                 // memory.
                                 const bool may_be = result == "connected" ||
                                                     result == "no memory" ||
                                                     result == system_error(ENOMEM).message() ||
                                                     result == system_error(ETIMEDOUT).message();
                                 EXPECT_TRUE(may_be) << result;
                                 EXPECT_EQ(connect_within(1min), "connected") << "afterwards";
                               });
}

}  // namespace
}  // namespace tambour::connecting_test
