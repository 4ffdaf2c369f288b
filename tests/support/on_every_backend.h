// The fixture of the conformance suite, which verifies that every backend behaves the same.
//
// A test of the suite is a TEST_P of a class derived from OnEveryBackend. TAMBOUR_ON_EVERY_BACKEND
// runs it on each variant; TAMBOUR_ON_EVERY_TRANSPORT (transports/every_transport.h) also over TLS
// and in a simulation. Variants that the machine cannot run are skipped, with the reason.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/sim/simulation.h>
#include <tambour/tambour.h>

#include "support/transport.h"

namespace tambour::test {

/// A backend with options that must not change its behaviour.
struct Variant {
  std::string name;
  LoopOptions options{};
  bool is_simulated = false;           ///< The loop runs on a simulated host of its own.
  Transport (*transport)() = nullptr;  ///< Null: sockets.
};

void PrintTo(const Variant& variant,
             std::ostream* out);  // NOLINT: the name is defined by GoogleTest.

const std::vector<Variant>& all_variants();
std::string name_of_variant(const testing::TestParamInfo<Variant>& variant);

class OnEveryBackend : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// For other loops of the test.
  [[nodiscard]] const LoopOptions& options() const { return options_; }
  [[nodiscard]] const BackendTraits& traits() const { return own_loop_->backend(); }
  [[nodiscard]] bool is(BackendKind kind) const { return options().backend == kind; }

  /// The loop of the test.
  [[nodiscard]] EventLoop& loop() { return *own_loop_; }

  /// Destroys the loop before the end of the test.
  void destroy_loop() { own_loop_.reset(); }

  /// Runs a number of iterations without waiting. Events of local descriptors arrive in the first
  /// two.
  void run_iterations(int iterations = 3);

  /// Runs until `done()` returns true. Returns false after one minute.
  [[nodiscard]] bool run_until(const std::function<bool()>& done);

  /// Like run_until(), for conditions that other threads change without waking this loop. Returns
  /// false after one minute.
  [[nodiscard]] bool eventually(const std::function<bool()>& done);

  /// Runs the loop until the task completes, and rethrows its exception. Fails the test after one
  /// minute.
  void run(Task<> task);

  /// Runs the loop for the given time.
  void run_for(Duration time);

  /// Runs the loop for the given time and returns whether it spent nearly all of it waiting in the
  /// kernel. A spinning loop uses processor time whenever it is scheduled; a waiting one does not.
  [[nodiscard]] bool sleeps_through(Duration time);

 private:
  std::optional<sim::Simulation> simulation_;
  LoopOptions options_;
  std::optional<EventLoop> own_loop_;
};

}  // namespace tambour::test

#define TAMBOUR_ON_EVERY_BACKEND(suite)                                           \
  INSTANTIATE_TEST_SUITE_P(Every, suite, testing::ValuesIn(test::all_variants()), \
                           &test::name_of_variant)
