// Name resolution.
#include <tambour/net/resolver.h>

#include <netdb.h>

#include <latch>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/sim/simulation.h>
#include <tambour/task/scope.h>
#include <tambour/threads/worker_pool.h>

#include "support/on_every_backend.h"

namespace tambour::resolver_test {
namespace {

using Answer = Result<std::vector<Endpoint>>;

Task<> ask(std::string host, AddressFamily family, Answer& answer) {
  answer = co_await Resolver::system().resolve(std::move(host), 80, family);
}

std::string first_of(const Answer& answer) {
  return answer ? answer->at(0).to_string() : answer.error().message();
}

class Resolvers : public test::OnEveryBackend {
 public:
  /// Returns an answer that needs no iteration of the loop.
  Answer at_once(std::string host, AddressFamily family = AddressFamily::any) {
    Answer answer = std::unexpected(system_error(EINPROGRESS));
    TaskScope scope(loop());
    scope.spawn(ask(std::move(host), family, answer));
    return answer;
  }
};

TAMBOUR_ON_EVERY_BACKEND(Resolvers);

TEST_P(Resolvers, a_numeric_address_resolves_to_itself_at_once) {
  EXPECT_EQ(first_of(at_once("127.0.0.1")), "127.0.0.1:80");
  EXPECT_EQ(first_of(at_once("::1", AddressFamily::v6)), "[::1]:80");
  EXPECT_EQ(at_once("::1", AddressFamily::v4).error(), resolver_error(EAI_ADDRFAMILY));
  EXPECT_EQ(at_once("").error(), resolver_error(EAI_NONAME));
  EXPECT_EQ(at_once(std::string("localhost\0.org", 14)).error(), resolver_error(EAI_NONAME));
}

TEST_P(Resolvers, a_name_is_looked_up_on_another_thread) {
  Answer answer = std::unexpected(system_error(EINPROGRESS));
  spawn(loop(), ask("localhost", AddressFamily::v4, answer));
  EXPECT_EQ(answer.error(), system_error(EINPROGRESS));
  loop().run();
  EXPECT_EQ(first_of(answer), "127.0.0.1:80");
}

TEST_P(Resolvers, an_invalid_name_fails_with_a_resolver_error) {
  Answer answer;
  spawn(loop(), ask(std::string(300, 'x'), AddressFamily::any, answer));
  loop().run();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().category(), resolver_category());
  EXPECT_EQ(answer.error().message(), ::gai_strerror(answer.error().value()));
}

TEST_P(Resolvers, a_stopped_lookup_does_not_wait_for_a_worker) {
  // All threads of the pool are blocked until the end of this test, so no lookup starts.
  WorkerPool& pool = WorkerPool::names();
  const auto over = std::make_shared<std::latch>(1);
  for (unsigned i = 0; i < pool.threads(); ++i) pool.submit([over] { over->wait(); });
  std::vector<Answer> answers(500);
  {
    TaskScope scope(loop());
    for (Answer& answer : answers) scope.spawn(ask("localhost", AddressFamily::any, answer));
    scope.request_stop();
    EXPECT_TRUE(run_until([&scope] { return scope.empty(); }));
  }
  over->count_down();
  for (const Answer& answer : answers)
    EXPECT_TRUE(!answer && answer.error() == system_error(ECANCELED));
}

TEST(SimulatedResolver, knows_the_hosts_of_the_simulation) {
  sim::Simulation simulation;
  sim::Host& host = simulation.add_host("client");
  simulation.add_host("server");
  EventLoop loop(host.loop_options());
  const auto look_up = [&](const std::string& name, AddressFamily family = AddressFamily::any) {
    Answer answer = std::unexpected(system_error(EINPROGRESS));
    spawn(loop, ask(name, family, answer));
    EXPECT_EQ(simulation.run(), sim::End::finished);
    return answer;
  };
  const Answer both = look_up("server");
  ASSERT_TRUE(both);
  ASSERT_EQ(both->size(), 2U);
  EXPECT_EQ(both->front().to_string(), "[fd00::2]:80");
  EXPECT_EQ(both->back().to_string(), "10.0.0.2:80");
  EXPECT_EQ(first_of(look_up("client", AddressFamily::v4)), "10.0.0.1:80");
  EXPECT_EQ(first_of(look_up("localhost")), "[::1]:80");
  EXPECT_EQ(look_up("nobody").error(), resolver_error(EAI_NONAME));
  host.fail_next(sim::SystemCall::look_up, ENOMEM);
  EXPECT_EQ(look_up("server").error(), system_error(ENOMEM));
}

}  // namespace
}  // namespace tambour::resolver_test
