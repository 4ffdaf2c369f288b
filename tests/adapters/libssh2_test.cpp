// SshSession with sshd of OpenSSH.
#include <tambour/adapters/libssh2.h>

#include <libssh2_sftp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>
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
        << "PidFile none\nMaxStartups 200\nPermitRootLogin yes\nPermitUserRC no\n"
        << "Subsystem sftp internal-sftp\n";
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
    EXPECT_FALSE(session->is_usable());
  }());
}

/// Asks for the status of a file again and again.
Task<> stat_many(SshSession session, std::size_t count, std::size_t& done) {
  auto begin = [&] { return libssh2_sftp_init(session.get()); };
  auto begun = co_await session.call(std::move(begin));
  LIBSSH2_SFTP* const sftp = *begun;
  for (std::size_t i = 0; i < count; ++i) {
    LIBSSH2_SFTP_ATTRIBUTES attributes;
    auto step = [&] { return libssh2_sftp_stat(sftp, "/", &attributes); };
    auto status = co_await session.call(std::move(step));
    if (status) ++done;
  }
  auto end = [&] { return libssh2_sftp_shutdown(sftp); };
  static_cast<void>(co_await session.call(std::move(end)));
}

TEST_F(Libssh2, operations_of_many_sessions_are_in_flight) {
  run([this]() -> Task<> {
    constexpr std::size_t sessions = 20;
    const std::size_t count = test::scaled(500);
    std::size_t done = 0;
    TaskScope scope(loop);
    for (std::size_t i = 0; i < sessions; ++i) {
      auto session = co_await authenticated();
      scope.spawn(stat_many(std::move(*session), count, done));
    }
    static_cast<void>(co_await scope.join());
    EXPECT_EQ(done, sessions * count);
  }());
}

TEST_F(Libssh2, a_session_is_lost_when_an_operation_is_stopped) {
  run([this]() -> Task<> {
    TAMBOUR_TRACE_SEED();
    test::Random random;
    const std::size_t count = test::scaled(40);
    auto session = co_await authenticated();
    for (std::size_t i = 0; i < count; ++i) {
      const std::chrono::microseconds limit(random.below(10'000));
      auto result = co_await timeout(limit, session->execute("echo hello"));
      EXPECT_EQ(result.has_value(), session->is_usable());
      if (result) continue;
      EXPECT_EQ(result.error().error, system_error(ETIMEDOUT));
      auto refused = co_await session->execute("echo hello");
      EXPECT_EQ(refused.error().error, system_error(ENOTCONN));
      session = co_await authenticated();
    }
    auto slow = co_await timeout(5ms, session->execute("sleep 60"));
    EXPECT_EQ(slow.error().error, system_error(ETIMEDOUT));
  }());
}

TEST_F(Libssh2, a_connection_that_the_server_ends_is_an_error_and_a_restart_is_survived) {
  run([this]() -> Task<> {
    auto survivor = co_await authenticated();
    auto session = co_await authenticated();
    // sshd has a process for each session.
    auto ended = co_await session->execute("kill -KILL $PPID; sleep 60");
    EXPECT_EQ(ended.error().error, system_error(ECONNRESET));
    EXPECT_FALSE(session->is_usable());
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
