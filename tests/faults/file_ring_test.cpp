// The ring for files next to epoll, poll and select, if the kernel does not create it.
#include <cerrno>
#include <string>

#include <gtest/gtest.h>

#include <tambour/file/file.h>

#include "faults/faults.h"
#include "loop/core.h"
#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/temporary_folder.h"

namespace tambour::file_ring_test {
namespace {

using detail::base::Call;
using test::Faults;

class FileRing : public test::OnEveryBackend {};

TEST_P(FileRing, is_replaced_by_threads_if_the_kernel_does_not_create_it) {
  if (is(BackendKind::io_uring)) GTEST_SKIP() << "the loop has no other ring";
  constexpr std::pair<Call, int> failures[] = {{Call::ring_open, EPERM},
                                               {Call::ring_open, ENOSYS},
                                               {Call::ring_open, ENOMEM},
                                               {Call::ring_open, EMFILE},
                                               {Call::ring_register, ENOMEM}};
  const test::TemporaryFolder folder;
  for (const auto& [call, error] : failures) {
    SCOPED_TRACE(testing::Message() << static_cast<int>(call) << ": " << error);
    const std::size_t before = test::open_descriptors();
    {
      EventLoop local(options());
      Faults faults;
      constexpr unsigned all = 100;
      faults.fail(call, 1, error, all);
      bool done = false;
      spawn(local, [](std::string path, bool& right) -> Task<> {
        auto file = co_await File::open(path, FileMode::create);
        if (!file) co_return;
        const auto written = co_await file->write_at("text", 0);
        const auto synced = co_await file->sync();
        right = written && synced;
      }(folder.path() + "/file", done));
      local.run();
      EXPECT_TRUE(done);
      EXPECT_TRUE(faults.hit());
      EXPECT_FALSE(
          detail::loop::core_of(local).backend().supports(detail::OperationKind::file_read));
      // The decision is kept.
      const unsigned tries = faults.count(call);
      EXPECT_FALSE(
          detail::loop::core_of(local).backend().supports(detail::OperationKind::file_write));
      EXPECT_EQ(faults.count(call), tries);
    }
    EXPECT_LE(test::open_descriptors(), before + 1);  // The threads keep an eventfd.
  }
}

TAMBOUR_ON_EVERY_BACKEND(FileRing);

}  // namespace
}  // namespace tambour::file_ring_test
