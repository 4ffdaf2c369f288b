// Early data on simulated networks that delay, lose and cut what is sent, with an attacker between
// client and server who replays it. A seed decides everything.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/scale.h"
#include "tls/support/certificates.h"
#include "tls/support/early_data.h"
#include "tls/support/seeded_random.h"

namespace tambour::simulated_early_data_test {
namespace {

using namespace std::chrono_literals;
using test::Contexts;
using test::Outcome;
using test::Received;

sim::Options network(std::uint64_t seed, bool trace) {
  sim::Options options = sim::Options::rough(seed);
  options.stream_reset = 0;
  options.no_memory = 0;
  options.no_descriptors = 0;
  options.trace = trace;
  return options;
}

/// Some networks hold only a few bytes in flight.
template <class Options>
Options patient(Options options = {}) {
  options.handshake_timeout = 24h;
  return options;
}

/// What the attacker does with the first packets of a connection.
enum class Attack : std::uint8_t {
  none,
  replay_later,  ///< Sends them again when the client has its answer.
  race,          ///< Delivers them twice, each copy after a random time.
};

/// A client that asks twice, the second time with early data, and an attacker on its path.
class Scenario {
 public:
  Scenario(std::uint64_t seed, Attack attack, bool trace = false)
      : random_(seed), simulation_(seed, network(seed, trace)), attack_(attack) {
    ListenOptions options;
    options.tls = contexts_.server;
    options.tls_early_data = true;
    options.on_rejected = [this](SocketStream&, Error) { ++rejected; };
    server_.emplace(
        TcpServer::listen(server_loop_, Endpoint::parse(far_.ip() + ":443").value(), options)
            .value());
    server_->serve(
        [this](TcpStream stream) { return test::answer_early(std::move(stream), seen); });
    // The session belongs to the address and port of the server.
    path_.emplace(
        TcpServer::listen(path_loop_, Endpoint::parse(middle_.ip() + ":443").value()).value());
    path_->serve([this](TcpStream near) { return forward(std::move(near)); });
    spawn(client_loop_, [](Scenario& self) -> Task<> {
      self.outcomes.push_back(co_await self.ask("one"));
      self.outcomes.push_back(co_await self.ask("pay"));
      self.answered_ = true;
    }(*this));
    static_cast<void>(simulation_.run_for(48h));
  }

  /// How many handlers have got "pay" before their handshake was complete, and after it.
  [[nodiscard]] std::ptrdiff_t early() const {
    return std::ranges::count(seen, "pay", &Received::early);
  }
  [[nodiscard]] std::ptrdiff_t late() const {
    return std::ranges::count(seen, "pay", &Received::late);
  }
  [[nodiscard]] const std::string& trace() const { return simulation_.trace(); }

  std::vector<Outcome> outcomes;
  std::vector<Received> seen;
  int rejected = 0;

 private:
  Task<Outcome> ask(std::string request) {
    auto stream = co_await TcpStream::connect(path_->endpoint());
    EXPECT_TRUE(stream);
    if (!stream) co_return Outcome();
    co_return co_await test::ask(*stream, contexts_.client, std::move(request));
  }

  Task<> forward(TcpStream near) {
    std::string first;
    const bool attacks = ++connections_ == 2 && attack_ != Attack::none;
    if (attacks) first = co_await receive_first(near);
    TaskScope copies(path_loop_);
    if (attacks) copies.spawn(replay(first));
    if (attack_ == Attack::race) static_cast<void>(co_await sleep_for(random_time()));
    auto far = co_await TcpStream::connect(server_->endpoint());
    EXPECT_TRUE(far);
    bool answered = false;
    co_await when_all(send_and_relay(near, *far, first, answered),
                      test::relay_answer(*far, near, answered));
    co_await copies.join();
  }

  static Task<> send_and_relay(TcpStream& from, TcpStream& to, const std::string& first,
                               const bool& answered) {
    EXPECT_TRUE(co_await to.write(first));
    std::string unused;
    co_await test::relay(from, to, unused, answered);
  }

  /// The client waits for an answer when it has sent its first packets.
  static Task<std::string> receive_first(TcpStream& near) {
    Buffer all;
    while ((co_await timeout(10s, near.read(all))).value_or(0) > 0) {
    }
    co_return all.to_string();
  }

  Task<> replay(std::string first) {
    if (attack_ == Attack::race) {
      static_cast<void>(co_await sleep_for(random_time()));
    } else {
      while (!answered_) static_cast<void>(co_await sleep_for(1s));
    }
    auto stream = co_await TcpStream::connect(server_->endpoint());
    EXPECT_TRUE(stream);
    co_await when_all(send(*stream, first), drain(*stream));
  }

  /// The server may have closed the connection before it has received everything.
  static Task<> send(TcpStream& to, const std::string& bytes) {
    static_cast<void>(co_await to.write(bytes));
  }

  static Task<> drain(TcpStream& from) {
    Buffer answer;
    while ((co_await timeout(10min, from.read(answer))).value_or(0) > 0) {
    }
    from.close();
  }

  Duration random_time() { return Duration(simulation_.random(std::uint64_t{2'000'000'000})); }

  const test::SeededRandom random_;
  const Contexts contexts_{patient(test::with_early_data()), patient<tls::ClientOptions>()};
  sim::Simulation simulation_;
  sim::Host& near_ = simulation_.add_host("client");
  sim::Host& middle_ = simulation_.add_host("path");
  sim::Host& far_ = simulation_.add_host("server");
  EventLoop client_loop_{near_.loop_options()};
  EventLoop path_loop_{middle_.loop_options()};
  EventLoop server_loop_{far_.loop_options()};
  std::optional<TcpServer> server_, path_;
  const Attack attack_;
  int connections_ = 0;
  bool answered_ = false;
};

const std::uint64_t seeds = test::sanitized ? 10 : 100;

/// What holds on every network.
void expect_answers(const Scenario& scenario) {
  ASSERT_EQ(scenario.outcomes.size(), 2U);
  const Outcome& first = scenario.outcomes[0];
  EXPECT_EQ(first.error, Error()) << first.error.message();
  EXPECT_EQ(first.answer, "late one");
  const Outcome& second = scenario.outcomes[1];
  EXPECT_EQ(second.error, Error()) << second.error.message();
  EXPECT_TRUE(second.resumed);
  const bool accepted = second.early_data == tls::EarlyData::accepted;
  EXPECT_EQ(second.answer, accepted ? "early pay" : "late pay");
  // Never twice, and not lost.
  EXPECT_EQ(scenario.early(), 1);
  EXPECT_EQ(scenario.late(), accepted ? 0 : 1);
}

TEST(SimulatedEarlyData, is_accepted_once_on_rough_networks) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    const Scenario scenario(seed, Attack::none);
    expect_answers(scenario);
    EXPECT_EQ(scenario.late(), 0);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SimulatedEarlyData, replay_reaches_no_handler) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    const Scenario scenario(seed, Attack::replay_later);
    expect_answers(scenario);
    EXPECT_EQ(scenario.late(), 0);
    EXPECT_EQ(scenario.seen.size(), 2U);
    EXPECT_EQ(scenario.rejected, 1);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SimulatedEarlyData, only_the_first_of_two_copies_is_accepted) {
  std::uint64_t rejected = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    const Scenario scenario(seed, Attack::race);
    expect_answers(scenario);
    if (testing::Test::HasFailure()) return;
    rejected += scenario.outcomes[1].early_data == tls::EarlyData::rejected ? 1 : 0;
  }
  EXPECT_GT(rejected, 0U);
  EXPECT_LT(rejected, seeds);
}

TEST(SimulatedEarlyData, a_seed_reproduces_every_event) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto trace = [seed] { return Scenario(seed, Attack::race, true).trace(); };
    const std::string first = trace();
    EXPECT_FALSE(first.empty());
    EXPECT_TRUE(trace() == first) << seed;
  }
}

}  // namespace
}  // namespace tambour::simulated_early_data_test
