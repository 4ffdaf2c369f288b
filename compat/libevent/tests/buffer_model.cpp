// Random calls of the functions of evbuffers, compared with strings. The program runs on either
// library.
//
// buffer_model [first seed [number of seeds [calls per seed [original]]]]
//
// With `original`, it makes no calls that libevent 2.1.12 fails on: buffers that refer to each
// other are never freed, and reserving or reading no bytes may fail an assertion.
//
// This file has the choice of calls, and those that add, move and take bytes.
#include "buffer_model.h"

#include <algorithm>
#include <string>

namespace buffer_model {

namespace {
constexpr std::size_t length_max = 300'000;
}

void Test::one_call() {
  Tracked& one = tracked_[random_.below(buffer_count)];
  Tracked& other = tracked_[random_.below(buffer_count)];
  if (one.bytes.size() > length_max && !one.front_frozen) {
    evbuffer_drain(one.buffer, one.bytes.size() - 100);
    one.bytes.erase(0, one.bytes.size() - 100);
  }
  switch (random_.below(9)) {
    case 0:
    case 1:
      return add(one);
    case 2:
      return move(one, other);
    case 3:
      return take(one);
    case 4:
      return search(one);
    case 5:
      return lines(one);
    case 6:
      return space(one);
    case 7:
      return random_.below(3) == 0 ? settings(one) : transfer(one);
    default:
      return random_.below(4) == 0 ? files(one) : add(one);
  }
}

void Test::add(Tracked& to) {
  const std::string more = some_bytes(random_.size());
  const bool appended = !to.back_frozen;
  switch (random_.below(6)) {
    case 0: {
      operation_ = "prepend";
      const bool done = !to.front_frozen || more.empty();
      equal(evbuffer_prepend(to.buffer, more.data(), more.size()), done ? 0 : -1, "result");
      if (done) to.bytes.insert(0, more);
      return;
    }
    case 1: {
      operation_ = "add_reference";
      auto* const memory = static_cast<char*>(std::malloc(more.size() + 1));
      std::copy(more.begin(), more.end(), memory);
      ++references_;
      equal(evbuffer_add_reference(to.buffer, memory, more.size(), &released, this),
            appended ? 0 : -1, "result");
      if (!appended) released(memory, 0, this);
      break;
    }
    case 2: {
      operation_ = "add_printf";
      const int number = static_cast<int>(random_.below(1000));
      std::string text = more;
      std::replace(text.begin(), text.end(), '\0', 'z');
      const int result = evbuffer_add_printf(to.buffer, "%d %s|", number, text.c_str());
      const std::string created = std::to_string(number) + " " + text + "|";
      equal(result, appended ? static_cast<long long>(created.size()) : -1, "result");
      if (appended) to.bytes += created;
      return;
    }
    case 3: {
      operation_ = "add_iovec";
      const std::size_t half = more.size() / 2;
      evbuffer_iovec extents[2] = {{const_cast<char*>(more.data()), half},
                                   {const_cast<char*>(more.data()) + half, more.size() - half}};
      equal(static_cast<long long>(evbuffer_add_iovec(to.buffer, extents, 2)),
            appended ? static_cast<long long>(more.size()) : 0, "result");
      break;
    }
    default:
      operation_ = "add";
      equal(evbuffer_add(to.buffer, more.data(), more.size()), appended ? 0 : -1, "result");
  }
  if (appended) to.bytes += more;
}

void Test::move(Tracked& from, Tracked& to) {
  const bool same = &from == &to;
  switch (random_.below(4)) {
    case 0: {
      operation_ = "add_buffer";
      const bool allowed = !from.front_frozen && !to.back_frozen;
      const bool nothing = from.bytes.empty() || same;
      equal(evbuffer_add_buffer(to.buffer, from.buffer), nothing || allowed ? 0 : -1, "result");
      if (nothing || !allowed) return;
      to.bytes += from.bytes;
      from.bytes.clear();
      return;
    }
    case 1: {
      operation_ = "prepend_buffer";
      const bool allowed = !from.front_frozen && !to.front_frozen;
      const bool nothing = from.bytes.empty() || same;
      equal(evbuffer_prepend_buffer(to.buffer, from.buffer), nothing || allowed ? 0 : -1, "result");
      if (nothing || !allowed) return;
      to.bytes.insert(0, from.bytes);
      from.bytes.clear();
      return;
    }
    case 2: {
      operation_ = "remove_buffer";
      const std::size_t size = random_.size();
      const bool allowed = !from.front_frozen && !to.back_frozen;
      const std::size_t moved = std::min(size, from.bytes.size());
      const int result = evbuffer_remove_buffer(from.buffer, to.buffer, size);
      if (size == 0 || same) return equal(result, 0, "result");
      equal(result, allowed ? static_cast<long long>(moved) : -1, "result");
      if (!allowed) return;
      to.bytes.append(from.bytes, 0, moved);
      from.bytes.erase(0, moved);
      return;
    }
    default: {
      operation_ = "add_buffer_reference";
      if (is_original_) return;
      const int result = evbuffer_add_buffer_reference(to.buffer, from.buffer);
      if (from.bytes.empty()) return equal(result, 0, "result");
      if (to.back_frozen || same) equal(result, -1, "result");
      // A buffer that has references itself is refused.
      if (result == 0) to.bytes += from.bytes;
    }
  }
}

void Test::take(Tracked& from) {
  const std::size_t size = random_.size();
  const std::size_t taken = std::min(size, from.bytes.size());
  std::string into(size, '?');
  const bool refused = from.front_frozen && taken != 0;
  switch (random_.below(5)) {
    case 0:
      operation_ = "drain";
      equal(evbuffer_drain(from.buffer, size), from.front_frozen && !from.bytes.empty() ? -1 : 0,
            "result");
      if (!from.front_frozen) from.bytes.erase(0, taken);
      return;
    case 1:
      operation_ = "remove";
      equal(evbuffer_remove(from.buffer, into.data(), size),
            refused ? -1 : static_cast<long long>(taken), "result");
      if (refused) return;
      if (into.compare(0, taken, from.bytes, 0, taken) != 0) fail("other bytes");
      from.bytes.erase(0, taken);
      return;
    case 2:
      operation_ = "copyout";
      equal(evbuffer_copyout(from.buffer, into.data(), size),
            refused ? -1 : static_cast<long long>(taken), "result");
      if (!refused && into.compare(0, taken, from.bytes, 0, taken) != 0) fail("other bytes");
      return;
    case 3: {
      operation_ = "copyout_from";
      const std::size_t at = random_.below(from.bytes.size() + 1);
      const evbuffer_ptr ptr = position(from, at);
      const std::size_t rest = std::min(size, from.bytes.size() - at);
      const bool no = from.front_frozen && rest != 0;
      equal(evbuffer_copyout_from(from.buffer, &ptr, into.data(), size),
            no ? -1 : static_cast<long long>(rest), "result");
      if (!no && into.compare(0, rest, from.bytes, at, rest) != 0) fail("other bytes");
      return;
    }
    default: {
      operation_ = "pullup";
      const bool all = random_.below(4) == 0;
      const std::size_t wanted = all ? from.bytes.size() : size;
      const unsigned char* const bytes =
          evbuffer_pullup(from.buffer, all ? -1 : static_cast<ev_ssize_t>(size));
      if (wanted == 0 || wanted > from.bytes.size()) return equal(bytes != nullptr, 0, "result");
      if (bytes == nullptr) fail("null");
      if (std::memcmp(bytes, from.bytes.data(), wanted) != 0) fail("other bytes");
      if (evbuffer_get_contiguous_space(from.buffer) < wanted) fail("not contiguous");
    }
  }
}

}  // namespace buffer_model

int main(int argc, char** argv) {
  const unsigned long first = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  const unsigned long seeds = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 100;
  const int calls = argc > 3 ? std::atoi(argv[3]) : 400;
  const bool is_original = argc > 4;
  for (unsigned long seed = first; seed != first + seeds; ++seed)
    buffer_model::Test(seed, is_original).run(calls);
  std::printf("%lu seeds of %d calls\n", seeds, calls);
}
