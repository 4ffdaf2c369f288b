// The backend contract beyond what the handles use; the drop-in libraries rely on it.
#include "backend/backend.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tambour::detail::backend::backend_test {
namespace {

class Watch final : public detail::Operation {
 public:
  explicit Watch(int watched) : detail::Operation(detail::OperationKind::poll, &run) {
    fd = watched;
    events = Events::read;
  }
  std::vector<int>* seen = nullptr;

 private:
  static void run(detail::ReadyNode& ready) {
    auto& self = static_cast<Watch&>(ready);
    self.result = 0;
    self.seen->push_back(self.fd);
  }
};

class Backends : public testing::TestWithParam<BackendKind> {
 protected:
  void SetUp() override {
    auto opened = open_backend({.backend = GetParam()});
    ASSERT_TRUE(opened);
    if ((*opened)->traits().kind != GetParam()) GTEST_SKIP() << (*opened)->traits().fallback_reason;
    backend_ = std::move(*opened);
  }
  void TearDown() override {
    if (backend_ != nullptr) backend_->abandon();
    for (const int fd : fds_) ::close(fd);
  }

  std::array<int, 2> pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    fds_.insert(fds_.end(), ends.begin(), ends.end());
    return ends;
  }
  static void put(int fd) { EXPECT_EQ(::write(fd, "x", 1), 1); }

  /// Returns the descriptors that are ready now, in the order in which they are reported.
  std::vector<int> look() {
    std::vector<int> seen;
    for (const auto& watch : watches_) watch->seen = &seen;
    base::ReadyQueue ready;
    backend_->poll(0, ready);
    ready.run_all();
    return seen;
  }
  Watch& watch(int fd) {
    watches_.push_back(std::make_unique<Watch>(fd));
    backend_->submit(*watches_.back());
    return *watches_.back();
  }

  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Watch>> watches_;
  std::vector<int> fds_;
};

TEST_P(Backends, a_revalidated_descriptor_is_watched_for_either_file) {
  const auto first = pair();
  const auto second = pair();
  Watch& watched = watch(first[0]);
  EXPECT_TRUE(look().empty());
  for (const bool exchanged : {false, true}) {
    backend_->cancel(watched);
    if (exchanged) {
      ASSERT_EQ(::dup3(second[0], first[0], O_CLOEXEC), first[0]);
    }
    backend_->revalidate(first[0]);
    backend_->submit(watched);
    EXPECT_TRUE(look().empty());
    put(exchanged ? second[1] : first[1]);
    EXPECT_EQ(look(), std::vector{first[0]});
    char byte;
    EXPECT_EQ(::read(first[0], &byte, 1), 1);
  }
}

TEST_P(Backends, invalidation_overrides_revalidation) {
  const auto ends = pair();
  Watch& watched = watch(ends[0]);
  EXPECT_TRUE(look().empty());
  backend_->cancel(watched);
  backend_->invalidate(ends[0]);
  backend_->revalidate(ends[0]);
  backend_->submit(watched);
  put(ends[1]);
  EXPECT_EQ(look(), std::vector{ends[0]});
}

TEST_P(Backends, descriptors_are_reported_in_the_order_of_registration) {
  std::vector<int> order;
  for (int i = 0; i < 10; ++i) {
    const auto ends = pair();
    put(ends[1]);
    order.push_back(ends[0]);
  }
  for (const int fd : order) watch(fd);
  EXPECT_EQ(look(), order);
}

TEST_P(Backends, a_shared_backend_may_be_polled_by_different_threads) {
  ASSERT_TRUE(backend_->share());
  const auto ends = pair();
  watch(ends[0]);
  EXPECT_TRUE(look().empty());
  put(ends[1]);
  std::vector<int> seen;
  std::thread([&] { seen = look(); }).join();
  EXPECT_EQ(seen, std::vector{ends[0]});
  EXPECT_EQ(look(), std::vector{ends[0]});
}

INSTANTIATE_TEST_SUITE_P(All, Backends,
                         testing::Values(BackendKind::epoll, BackendKind::io_uring,
                                         BackendKind::poll, BackendKind::select));

}  // namespace
}  // namespace tambour::detail::backend::backend_test
