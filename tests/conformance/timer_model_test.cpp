// Timers compared with a simple model: a timer that is started and not stopped expires once, in the
// order of deadlines, and no other timer does.
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/random.h"
#include "support/scale.h"

namespace tambour::timer_model_test {
namespace {

using namespace std::chrono_literals;

class TimerModel : public test::OnEveryBackend {
 protected:
  using Name = int;
  using Model = std::multimap<TimePoint, Name>;
  struct Slot {
    std::unique_ptr<Timer> timer;
    Name name = 0;
  };

  void SetUp() override {
    OnEveryBackend::SetUp();
    slots_.resize(200);
    for (Slot& slot : slots_) renew(slot);
  }

  void TearDown() override {
    slots_.clear();
    OnEveryBackend::TearDown();
  }

  void renew(Slot& slot) {
    const Name name = next_name_++;
    slot.name = name;
    slot.timer = std::make_unique<Timer>(loop(), [this, name] { expired(name); });
  }

  /// Reads the deadline back, because only start() knows which time it used.
  void note_started(const Slot& slot) {
    invalidate(slot.name);
    deadlines_[slot.name] = slot.timer->deadline();
    model_.emplace(slot.timer->deadline(), slot.name);
  }

  void invalidate(Name name) {
    const auto known = deadlines_.find(name);
    if (known == deadlines_.end()) return;
    const auto [first, last] = model_.equal_range(known->second);
    for (auto entry = first; entry != last; ++entry) {
      if (entry->second != name) continue;
      model_.erase(entry);
      break;
    }
    deadlines_.erase(known);
  }

  void expired(Name name) {
    const auto known = deadlines_.find(name);
    ASSERT_NE(known, deadlines_.end()) << "a timer that was not started expired";
    EXPECT_EQ(known->second, model_.begin()->first) << "another was due before";
    EXPECT_LE(known->second, loop().now()) << "early";
    invalidate(name);
    ++expiries_;
  }

  void step(test::Random& random) {
    Slot& slot = slots_[random.below(slots_.size())];
    const Duration delay = std::chrono::microseconds(random.below(3000));
    switch (random.below(8)) {
      case 0:
        slot.timer->start(delay);
        return note_started(slot);
      case 1:
        slot.timer->start_at(loop().now() + delay);
        return note_started(slot);
      case 2:
      case 3:
        slot.timer->reset(delay);
        return note_started(slot);
      case 4:
        slot.timer->stop();
        return invalidate(slot.name);
      case 5:
        invalidate(slot.name);
        return renew(slot);
      case 6:
        slot.timer = std::make_unique<Timer>(std::move(*slot.timer));
        return;
      default:
        // Move assignment: the timer that is overwritten is destroyed.
        if (Slot& other = slots_[random.below(slots_.size())]; &other != &slot) {
          invalidate(slot.name);
          *slot.timer = std::move(*other.timer);
          slot.name = other.name;
          other.timer.reset();
          renew(other);
        }
    }
  }

  std::vector<Slot> slots_;
  Model model_;
  std::map<Name, TimePoint> deadlines_;
  Name next_name_ = 1;
  std::size_t expiries_ = 0;
};

TAMBOUR_ON_EVERY_BACKEND(TimerModel);

TEST_P(TimerModel, agrees_over_a_hundred_thousand_random_operations) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  for (std::size_t i = 0; i < test::scaled(100'000); ++i) {
    step(random);
    if (random.below(50) == 0) loop().run_ready();
    if (random.below(5000) == 0) loop().run_once();
    ASSERT_FALSE(HasFailure()) << "operation " << i;
  }
  loop().run();
  EXPECT_TRUE(model_.empty()) << model_.size() << " never expired";
  EXPECT_GT(expiries_, test::scaled(100));
}

TEST_P(TimerModel, leaves_no_due_timer_after_an_iteration) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  for (std::size_t i = 0; i < test::scaled(20'000); ++i) {
    step(random);
    if (i % 20 != 0) continue;
    loop().run_ready();
    if (!model_.empty()) {
      ASSERT_GT(model_.begin()->first, loop().now()) << "operation " << i;
    }
  }
}

}  // namespace
}  // namespace tambour::timer_model_test
