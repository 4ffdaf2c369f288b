// The table of file descriptors: records that stay where they are, and missing memory.
#include "common/fd_table.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace tambour::fd_table_test {
namespace {

struct Owner {
  int records = 0;
};

struct Record {
  Record(Owner& made_by, int number) : owner(made_by), fd(number) { ++owner.records; }
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;
  ~Record() { --owner.records; }
  Owner& owner;
  int fd;
};

int blocks = 0;
int allocations_left = -1;  ///< Negative: any number.

struct Memory {
  static void* reallocate(void* memory, std::size_t bytes) noexcept {
    if (allocations_left == 0) return nullptr;
    if (allocations_left > 0) --allocations_left;
    if (memory == nullptr) ++blocks;
    return std::realloc(memory, bytes);
  }
  static void free(void* memory) noexcept {
    --blocks;
    std::free(memory);
  }
};

using Table = compat::FdTable<Record, Memory>;

TEST(FdTable, records_stay_where_they_are) {
  Owner owner;
  {
    Table table;
    EXPECT_EQ(table.find(0), nullptr);
    EXPECT_EQ(table.end(), 0);
    std::vector<Record*> records;
    for (const int fd : {3, 100, 0, 5000, 15, 16}) {
      Record* const record = table.make(owner, fd);
      ASSERT_NE(record, nullptr);
      EXPECT_EQ(record->fd, fd);
      EXPECT_LT(fd, table.end());
      records.push_back(record);
    }
    for (Record* const record : records) {
      EXPECT_EQ(table.find(record->fd), record);
      EXPECT_EQ(table.make(owner, record->fd), record);
    }
    EXPECT_EQ(table.find(-1), nullptr);
    EXPECT_EQ(table.find(1000), nullptr);
    EXPECT_EQ(table.find(1'000'000), nullptr);
    std::vector<int> visited;
    table.for_each([&visited](const Record& record) { visited.push_back(record.fd); });
    EXPECT_TRUE(std::ranges::is_sorted(visited));
    EXPECT_EQ(visited.size(), static_cast<std::size_t>(owner.records));
    const std::set<int> numbers(visited.begin(), visited.end());
    for (const Record* const record : records) EXPECT_TRUE(numbers.contains(record->fd));
  }
  EXPECT_EQ(owner.records, 0);
  EXPECT_EQ(blocks, 0);
}

TEST(FdTable, without_memory_a_record_can_be_made_later) {
  Owner owner;
  {
    Table table;
    for (int fails_at = 0; fails_at < 2; ++fails_at) {
      allocations_left = fails_at;
      EXPECT_EQ(table.make(owner, 40), nullptr) << fails_at;
      EXPECT_EQ(table.find(40), nullptr);
      EXPECT_EQ(owner.records, 0);
      EXPECT_EQ(blocks, fails_at);
    }
    allocations_left = -1;
    ASSERT_NE(table.make(owner, 40), nullptr);
    EXPECT_NE(table.find(40), nullptr);
  }
  EXPECT_EQ(blocks, 0);
}

}  // namespace
}  // namespace tambour::fd_table_test
