// The pointer of public classes to their states.
#include <tambour/detail/owned_pointer.h>

#include <memory>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

namespace tambour::owned_pointer_test {
namespace {

using detail::OwnedPointer;

struct Counted {
  explicit Counted(int& counter) : deleted(&counter) {}
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  virtual ~Counted() { ++*deleted; }
  int* deleted;
};
struct Derived : Counted {
  using Counted::Counted;
};

static_assert(!std::is_copy_constructible_v<OwnedPointer<Counted>>);
static_assert(std::is_nothrow_move_constructible_v<OwnedPointer<Counted>>);
static_assert(sizeof(OwnedPointer<Counted>) == sizeof(Counted*));

TEST(OwnedPointer, deletes_the_object_once) {
  int deleted = 0;
  {
    OwnedPointer<Counted> first = std::make_unique<Derived>(deleted);
    OwnedPointer<Counted> second = std::move(first);
    EXPECT_TRUE(first ==
                nullptr);  // NOLINT(bugprone-use-after-move): the state of a moved pointer.
    EXPECT_EQ(second->deleted, &deleted);
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
}

TEST(OwnedPointer, deletes_the_former_object_when_it_is_assigned_or_reset) {
  int deleted = 0;
  OwnedPointer<Counted> pointer = std::make_unique<Counted>(deleted);
  pointer = std::make_unique<Derived>(deleted);
  EXPECT_EQ(deleted, 1);
  OwnedPointer<Counted>& same = pointer;
  pointer = std::move(same);
  EXPECT_EQ(deleted, 1);
  ASSERT_TRUE(static_cast<bool>(pointer));
  pointer.reset();
  EXPECT_EQ(deleted, 2);
  EXPECT_EQ(pointer.get(), nullptr);
}

}  // namespace
}  // namespace tambour::owned_pointer_test
