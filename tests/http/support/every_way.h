// Reads a text in every division into two pieces, and byte by byte.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "http/support/messages.h"

namespace tambour::test {

/// Reads `text` at once. Then reads it byte by byte, and in two pieces in every way, in one block
/// and in blocks of their own; a test that compares the verdicts fails if they differ.
template <class Parser>
Verdict read_in_every_way(std::string_view text, const http::MessageLimits& limits = {},
                          const std::vector<http::Method>& methods = {}) {
  const auto read = [&](const std::vector<std::size_t>& ends, bool in_blocks) {
    MessageReader<Parser> reader(limits, methods);
    return read_in_pieces(text, ends, reader, in_blocks);
  };
  const Verdict whole = read({}, false);
  std::vector<std::size_t> every;
  for (std::size_t i = 1; i < text.size(); ++i) {
    every.push_back(i);
    EXPECT_EQ(read({i}, false), whole) << "divided at " << i << ":\n" << text;
    EXPECT_EQ(read({i}, true), whole) << "in blocks, divided at " << i << ":\n" << text;
  }
  EXPECT_EQ(read(every, false), whole) << "byte by byte:\n" << text;
  EXPECT_EQ(read(every, true), whole) << "in blocks, byte by byte:\n" << text;
  return whole;
}

}  // namespace tambour::test
