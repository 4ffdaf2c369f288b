// File::open of files that are not regular: it never waits for another program and rejects files
// that are not seekable, in the same way on every backend.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/temporary_folder.h"

namespace tambour::special_files_test {
namespace {

class SpecialFiles : public test::OnEveryBackend {
 public:
  test::TemporaryFolder folder;
  [[nodiscard]] std::string path() const { return folder.path() + "/special"; }

  static Task<> expect_refusal(std::string path, FileMode mode, int error) {
    const auto opened = co_await File::open(path, mode);
    EXPECT_FALSE(opened) << path;
    if (!opened) {
      EXPECT_EQ(opened.error(), system_error(error)) << path;
    }
  }
};

TAMBOUR_ON_EVERY_BACKEND(SpecialFiles);

TEST_P(SpecialFiles, a_fifo_is_refused_at_once) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  run(expect_refusal(path(), FileMode::read, ESPIPE));
  run(expect_refusal(path(), FileMode::update, ESPIPE));
  run(expect_refusal(path(), FileMode::create, ESPIPE));
  run(expect_refusal(path(), FileMode::write, ENXIO));
}

TEST_P(SpecialFiles, a_path_with_a_null_byte_names_no_file) {
  const std::string regular = path() + ".regular";
  std::ofstream(regular) << "text";
  run(expect_refusal(regular + std::string("\0.txt", 5), FileMode::read, EINVAL));
  run(expect_refusal(regular + '\0', FileMode::create, EINVAL));
  run(expect_refusal(std::string(1, '\0'), FileMode::create, EINVAL));
}

TEST_P(SpecialFiles, many_fifos_do_not_stop_files) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  run([](std::string fifo, EventLoop& loop) -> Task<> {
    TaskScope scope(loop);
    for (unsigned i = 0; i < 2 * WorkerPool::files().threads(); ++i)
      scope.spawn(expect_refusal(fifo, FileMode::read, ESPIPE));
    auto file = co_await File::open(fifo + ".regular", FileMode::create);
    EXPECT_TRUE(file);
    if (file) {
      EXPECT_TRUE(co_await file->write_at("text", 0));
    }
    co_await scope.join();
  }(path(), loop()));
}

TEST_P(SpecialFiles, a_terminal_is_refused) {
  const UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.is_open() || ::grantpt(terminal.get()) != 0 || ::unlockpt(terminal.get()) != 0)
    GTEST_SKIP() << "there are no pseudoterminals: " << std::strerror(errno);
  std::array<char, 64> name{};
  ASSERT_EQ(::ptsname_r(terminal.get(), name.data(), name.size()), 0);
  run(expect_refusal(name.data(), FileMode::read, ESPIPE));
  run(expect_refusal(name.data(), FileMode::update, ESPIPE));
}

TEST_P(SpecialFiles, a_socket_is_refused) {
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  ASSERT_LT(path().size(), sizeof(at.sun_path));
  std::strcpy(at.sun_path, path().c_str());
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
  run(expect_refusal(path(), FileMode::read, ENXIO));
}

TEST_P(SpecialFiles, devices_with_positions_are_files) {
  run([]() -> Task<> {
    auto zeros = co_await File::open("/dev/zero");
    EXPECT_TRUE(zeros);
    if (!zeros) co_return;
    std::array<std::byte, 16> bytes;
    EXPECT_EQ(co_await zeros->read_at(bytes, 0), bytes.size());
  }());
}

TEST_P(SpecialFiles, a_directory_can_be_synced) {
  run([](std::string place) -> Task<> {
    auto directory = co_await File::open(place);
    EXPECT_TRUE(directory);
    if (directory) {
      EXPECT_TRUE(co_await directory->sync());
    }
  }(folder.path()));
}

TEST_P(SpecialFiles, a_file_that_was_opened_is_blocking) {
  run([](std::string at) -> Task<> {
    auto file = co_await File::open(at, FileMode::create);
    EXPECT_TRUE(file);
    if (file) {
      EXPECT_EQ(::fcntl(file->fd(), F_GETFL) & O_NONBLOCK, 0);
    }
  }(path()));
}

}  // namespace
}  // namespace tambour::special_files_test
