// The fixture of the conformance suite: what is promised of one loop is promised of every loop.
//
// A test of the suite is a TEST_P of a class that derives from OnEveryBackend, and runs on each
// variant by TAMBOUR_ON_EVERY_BACKEND. What this machine cannot run is skipped, with the reason.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::test {

/// A backend, and options under which it must keep the same promises.
struct Variant {
  std::string name;
  LoopOptions options;
};

void PrintTo(const Variant& variant, std::ostream* out);  // NOLINT: GoogleTest's own name.

const std::vector<Variant>& all_variants();
std::string name_of_variant(const testing::TestParamInfo<Variant>& variant);

class OnEveryBackend : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override;
  void TearDown() override;

  [[nodiscard]] LoopOptions options() const { return GetParam().options; }
  [[nodiscard]] const BackendTraits& traits() const { return own_loop_->backend(); }
  [[nodiscard]] bool is(BackendKind kind) const { return options().backend == kind; }

  /// The loop that each test is given.
  [[nodiscard]] EventLoop& loop() { return *own_loop_; }

  /// Destroys the loop, for tests that outlive it.
  void destroy_loop() { own_loop_.reset(); }

  /// So many turns without waiting: what local files have to tell arrives in the first two.
  void run_turns(int turns = 3);

  /// Runs until `done`, however many turns that takes. Ten seconds without it are a hang: false.
  [[nodiscard]] bool run_until(const std::function<bool()>& done);

  /// As run_until(), for what happens on other threads, which does not wake this loop; and with a
  /// minute's patience.
  [[nodiscard]] bool eventually(const std::function<bool()>& done);

  /// Runs a task to its end, and nothing longer; what leaves it is thrown. A minute without its end
  /// is a hang, and fails the test.
  void run(Task<> task);

  /// Runs for so long.
  void run_for(Duration time);

  /// Runs for so long, and says whether nearly all of that was spent asleep. A loop that spins does
  /// so whenever it is given a processor; one that sleeps takes none.
  [[nodiscard]] bool sleeps_through(Duration time);

 private:
  std::optional<EventLoop> own_loop_;
};

}  // namespace tambour::test

#define TAMBOUR_ON_EVERY_BACKEND(suite)                                           \
  INSTANTIATE_TEST_SUITE_P(Every, suite, testing::ValuesIn(test::all_variants()), \
                           &test::name_of_variant)
