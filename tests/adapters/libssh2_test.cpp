// SshSession with sshd of OpenSSH.
#include <tambour/adapters/libssh2.h>

#include <libssh2_sftp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "adapters/adapter_test.h"
#include "adapters/server_process.h"
#include "support/temporary_folder.h"

namespace tambour::libssh2_test {
namespace {

using namespace std::chrono_literals;
using adapters::SshSession;

class Libssh2 : public test::AdapterTest {
 protected:
  static void SetUpTestSuite() { libssh2_init(0); }
  static void TearDownTestSuite() { libssh2_exit(); }

  void SetUp() override {
    program = test::find_program("sshd", "/usr/sbin");
    if (program.empty()) GTEST_SKIP() << "openssh-server is not installed";
    user = ::getpwuid(::geteuid())->pw_name;
    if (::geteuid() == 0) ::mkdir("/run/sshd", 0755);  // sshd demands it.
    make_key("host");
    make_key("id");
    port = test::free_port();
    std::ofstream(folder.path() + "/conf")
        << "ListenAddress 127.0.0.1\nPort " << port << "\nHostKey " << folder.path() << "/host\n"
        << "AuthorizedKeysFile " << folder.path() << "/id.pub\nStrictModes no\nUsePAM no\n"
        << "PidFile none\nMaxSessions 150\nPermitRootLogin yes\nPermitUserRC no\n"
        << "Subsystem sftp internal-sftp\n"
        // bash reads the user's startup files if a daemon runs it as the outermost shell.
        << "SetEnv SHLVL=1\n";
    start_server();
  }

  void make_key(const std::string& name) const {
    test::ServerProcess keygen(
        {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder.path() + "/" + name},
        folder.path() + "/log");
    EXPECT_EQ(keygen.end(0), 0);
  }
  void start_server() {
    server.emplace(std::vector<std::string>{program, "-D", "-e", "-f", folder.path() + "/conf"},
                   folder.path() + "/log");
  }

  /// Performs the handshake as soon as the server listens.
  Task<std::optional<SshSession>> open() {
    std::optional<SshSession> opened;
    auto attempt = [&]() -> Task<bool> {
      auto stream = co_await connect("127.0.0.1", static_cast<std::uint16_t>(port));
      if (!stream) co_return false;
      auto session = co_await SshSession::open(UniqueFd(stream->release()));
      if (session) opened.emplace(std::move(*session));
      co_return opened.has_value();
    };
    static_cast<void>(co_await test::retry(std::move(attempt)));
    co_return std::move(opened);
  }
  Task<std::optional<SshSession>> authenticated() {
    auto session = co_await open();
    auto allowed = co_await session->authenticate_with_key(user, folder.path() + "/id.pub",
                                                           folder.path() + "/id");
    EXPECT_TRUE(allowed) << allowed.error().message;
    co_return std::move(session);
  }

  std::string program;
  std::string user;
  int port = 0;
  test::TemporaryFolder folder;
  std::optional<test::ServerProcess> server;
};

TEST_F(Libssh2, commands_have_output_errors_and_a_status) {
  run([this]() -> Task<> {
    auto session = co_await open();
    EXPECT_EQ(session->host_key_sha256().size(), 32U);
    auto refused = co_await session->authenticate_with_key(user, folder.path() + "/host.pub",
                                                           folder.path() + "/host");
    EXPECT_EQ(refused.error().error, system_error(EACCES));
    auto allowed = co_await session->authenticate_with_key(user, folder.path() + "/id.pub",
                                                           folder.path() + "/id");
    EXPECT_TRUE(allowed);
    auto result = co_await session->execute("echo out; echo err >&2; exit 3");
    if (!result) co_return ADD_FAILURE() << result.error().message, void();
    EXPECT_EQ(result->output, "out\n");
    EXPECT_EQ(result->errors, "err\n");
    EXPECT_EQ(result->exit_status, 3);
    auto killed = co_await session->execute("kill -TERM $$");
    EXPECT_EQ(killed->signal, "TERM");
    auto large = co_await session->execute("head -c 3000000 /dev/zero");
    EXPECT_EQ(large->output.size(), 3'000'000U);
    auto too_large = co_await session->execute("head -c 3000000 /dev/zero", 1'000'000);
    EXPECT_EQ(too_large.error().error, system_error(EMSGSIZE));
    auto next = co_await session->execute("echo next");
    EXPECT_EQ(next->output, "next\n");
  }());
}

/// An SFTP session of its own in the SSH session: a channel.
Task<LIBSSH2_SFTP*> open_sftp(SshSession& session) {
  auto begin = [&] { return libssh2_sftp_init(session.get()); };
  auto begun = co_await session.call(std::move(begin));
  co_return begun ? *begun : nullptr;
}

/// Asks for the status of a file again and again.
Task<> stat_many(SshSession& session, std::size_t count, test::Random* random,
                 test::Outcomes& outcomes) {
  LIBSSH2_SFTP* const sftp = co_await open_sftp(session);
  if (sftp == nullptr) co_return ADD_FAILURE() << "no channel", void();
  LIBSSH2_SFTP_ATTRIBUTES attributes{};
  // A call that was stopped is continued by the next one.
  auto operate = [&] {
    return session.call_concurrently([&] { return libssh2_sftp_stat(sftp, "/", &attributes); });
  };
  co_await test::repeat_operation(operate, count, random, outcomes);
  if (outcomes.failed == 0) {
    EXPECT_TRUE(LIBSSH2_SFTP_S_ISDIR(attributes.permissions));
  }
  auto end = [&] { return libssh2_sftp_shutdown(sftp); };
  static_cast<void>(co_await session.call_concurrently(std::move(end)));
}

TEST_F(Libssh2, a_hundred_channels_and_half_of_the_operations_are_stopped_at_random_points) {
  run([this]() -> Task<> {
    TAMBOUR_TRACE_SEED();
    test::Random random;
    const std::size_t count = test::scaled(100);
    auto session = co_await authenticated();
    for (test::Random* const chosen : {static_cast<test::Random*>(nullptr), &random}) {
      test::Outcomes outcomes;
      TaskScope scope(loop);
      for (int i = 0; i < 100; ++i) scope.spawn(stat_many(*session, count, chosen, outcomes));
      static_cast<void>(co_await scope.join());
      EXPECT_EQ(outcomes.done + outcomes.stopped, 100 * count);
      EXPECT_EQ(outcomes.stopped > 0, chosen != nullptr);
      EXPECT_GT(outcomes.done, 0U);
    }
    auto last = co_await session->execute("echo last");
    EXPECT_EQ(last->output, "last\n");
  }());
}

TEST_F(Libssh2, commands_run_at_the_same_time_and_half_are_stopped_at_random_points) {
  run([this]() -> Task<> {
    TAMBOUR_TRACE_SEED();
    test::Random random;
    auto session = co_await authenticated();
    auto operate = [&] { return session->execute("echo hello"); };
    test::Outcomes outcomes;
    TaskScope scope(loop);
    for (int i = 0; i < 20; ++i)
      scope.spawn(test::repeat_operation(operate, test::scaled(5), &random, outcomes));
    static_cast<void>(co_await scope.join());
    EXPECT_EQ(outcomes.done + outcomes.stopped, 20 * test::scaled(5));
    EXPECT_GT(outcomes.stopped, 0U);
    // Stopped in every stage.
    for (int i = 0; i < 8; ++i) {
      const std::chrono::milliseconds limit(3 * i);
      auto slow = co_await timeout(limit, session->execute("cat /dev/zero"));
      EXPECT_EQ(slow.error().error, system_error(ETIMEDOUT));
    }
    EXPECT_TRUE(session->is_usable());
    auto last = co_await session->execute("head -c 300000 /dev/zero");
    EXPECT_EQ(last->output.size(), 300'000U);
  }());
}

TEST_F(Libssh2, a_session_is_lost_when_a_call_in_it_is_stopped) {
  run([this]() -> Task<> {
    auto session = co_await authenticated();
    auto other = [&]() -> Task<> {
      auto ended = co_await session->execute("sleep 60");
      EXPECT_EQ(ended.error().error, system_error(ECONNRESET));
    };
    TaskScope scope(loop);
    scope.spawn(other());
    // Not before the channel of the command is open.
    bool has_begun = false;
    while (!has_begun) {
      auto never = [&] { return has_begun = true, int{LIBSSH2_ERROR_EAGAIN}; };
      auto stopped = co_await timeout(5ms, session->call(std::move(never)));
      EXPECT_EQ(stopped.error().error, system_error(ETIMEDOUT));
    }
    EXPECT_FALSE(session->is_usable());
    static_cast<void>(co_await scope.join());
    auto refused = co_await session->execute("echo hello");
    EXPECT_EQ(refused.error().error, system_error(ENOTCONN));
    // In the middle of a handshake.
    for (int i = 0; i < 20; ++i) {
      auto stream = co_await connect("127.0.0.1", static_cast<std::uint16_t>(port));
      auto opening = SshSession::open(UniqueFd(stream->release()));
      static_cast<void>(co_await timeout(std::chrono::microseconds(500 * i), std::move(opening)));
    }
    session = co_await authenticated();
    // A function that throws.
    bool is_caught = false;
    try {
      auto throwing = [] { return throw std::runtime_error("test"), 0; };
      static_cast<void>(co_await session->call(std::move(throwing)));
    } catch (const std::runtime_error&) {
      is_caught = true;
    }
    EXPECT_TRUE(is_caught);
    // Destroyed while a stopped command still has its channel.
    static_cast<void>(co_await timeout(20ms, session->execute("sleep 60")));
    session.reset();
  }());
}

TEST_F(Libssh2, a_connection_that_the_server_ends_is_an_error_and_a_restart_is_survived) {
  run([this]() -> Task<> {
    auto survivor = co_await authenticated();
    auto session = co_await authenticated();
    test::Outcomes outcomes;
    TaskScope scope(loop);
    for (int i = 0; i < 100; ++i) scope.spawn(stat_many(*session, 1'000, nullptr, outcomes));
    while (outcomes.done < 1'000) static_cast<void>(co_await sleep_for(1ms));
    // sshd has a process for each session.
    auto ended = co_await session->execute("kill -KILL $PPID; sleep 60");
    EXPECT_EQ(ended.error().error, system_error(ECONNRESET));
    EXPECT_FALSE(session->is_usable());
    static_cast<void>(co_await scope.join());
    EXPECT_EQ(outcomes.done + outcomes.failed, 100'000U);
    EXPECT_GE(outcomes.failed, 100U);
    server->end(SIGKILL);
    auto still = co_await survivor->execute("echo here");
    EXPECT_EQ(still->output, "here\n");
    const auto refused = co_await connect("127.0.0.1", static_cast<std::uint16_t>(port));
    EXPECT_FALSE(refused);
    start_server();
    session = co_await authenticated();
    auto again = co_await session->execute("echo again");
    EXPECT_EQ(again->output, "again\n");
  }());
}

}  // namespace
}  // namespace tambour::libssh2_test
