// The behaviour of the security patches of Debian's libevent 2.1.12-stable-8+deb12u1, as far as the
// functions are implemented: CVE-2026-63381, 63383, 63384 and 63388. The tests pass on the original
// too. (63379, 63382 and 63385 concern evhttp, 63387 the server of evdns.)

#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstring>
#include <string_view>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/tag.h>
#include <event2/util.h>
#include <gtest/gtest.h>

extern "C" {
int bufferevent_socket_set_conn_address_(bufferevent* bev, sockaddr* address, std::size_t size);
const sockaddr* bufferevent_socket_get_conn_address_(bufferevent* bev);
}

namespace {

/// Memory that ends where the next byte cannot be read.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::string_view bytes) : page_(std::size_t(sysconf(_SC_PAGESIZE))) {
    memory_ = static_cast<char*>(
        mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + page_, page_, PROT_NONE);
    begin_ = memory_ + page_ - bytes.size();
    std::memcpy(begin_, bytes.data(), bytes.size());
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { munmap(memory_, 2 * page_); }
  [[nodiscard]] const char* begin() const { return begin_; }

 private:
  std::size_t page_;
  char* memory_;
  char* begin_;
};

TEST(CVE_2026_63381, a_reference_to_a_buffer_may_follow_an_empty_chain) {
  constexpr std::string_view text = "referenced bytes";
  evbuffer* const from = evbuffer_new();
  evbuffer_add(from, text.data(), text.size());
  // Two ways to get a chain without bytes.
  for (const bool reserved : {false, true}) {
    evbuffer* const to = evbuffer_new();
    if (reserved) {
      evbuffer_expand(to, 100);
    } else {
      evbuffer_add_reference(to, "", 0, nullptr, nullptr);
    }
    ASSERT_EQ(evbuffer_add_buffer_reference(to, from), 0);
    ASSERT_EQ(evbuffer_add_buffer_reference(to, from), 0);
    evbuffer_add(to, "!", 1);
    ASSERT_EQ(evbuffer_get_length(to), 2 * text.size() + 1);
    const auto* bytes = reinterpret_cast<const char*>(evbuffer_pullup(to, -1));
    EXPECT_EQ(std::string_view(bytes, text.size()), text);
    EXPECT_EQ(bytes[2 * text.size()], '!');
    evbuffer_free(to);
  }
  evbuffer_free(from);
}

TEST(CVE_2026_63383, a_tag_is_read_only_as_far_as_its_bytes_are_contiguous) {
  // No byte ends the number, and the sixth is in another chain.
  const GuardedBytes unended("\x81\x82\x83\x84\x85");
  evbuffer* const buffer = evbuffer_new();
  evbuffer_add_reference(buffer, unended.begin(), 5, nullptr, nullptr);
  evbuffer_add(buffer, "\x86\x01", 2);
  ev_uint32_t tag = 0;
  EXPECT_EQ(evtag_peek(buffer, &tag), -1);
  EXPECT_EQ(evtag_unmarshal_header(buffer, &tag), -1);
  evbuffer_free(buffer);
}

int header_of(ev_uint32_t payload) {
  // Nothing is stored in the memory, so that it needs no pages.
  const std::size_t size = std::size_t{payload} + 1;
  void* const memory =
      mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  evbuffer* const buffer = evbuffer_new();
  std::array<unsigned char, 6> header{1, 0x70};
  for (unsigned nibble = 0; nibble < 8; ++nibble) {
    const unsigned at = 1 + nibble;
    const unsigned value = payload >> (4 * nibble) & 0xf;
    header[1 + at / 2] |= static_cast<unsigned char>(at % 2 == 0 ? value << 4 : value);
  }
  evbuffer_add(buffer, header.data(), header.size());
  evbuffer_add_reference(buffer, memory, size, nullptr, nullptr);
  ev_uint32_t tag = 0;
  const int result = evtag_unmarshal_header(buffer, &tag);
  evbuffer_free(buffer);
  munmap(memory, size);
  return result;
}

TEST(CVE_2026_63384, the_length_of_a_payload_is_at_most_int_max) {
  EXPECT_EQ(header_of(1000), 1000);
  EXPECT_EQ(header_of(INT_MAX), INT_MAX);
  EXPECT_EQ(header_of(INT_MAX + 1U), -1);
  EXPECT_EQ(header_of(UINT_MAX), -1);
}

TEST(CVE_2026_63388, the_length_of_an_address_is_checked) {
  event_base* const base = event_base_new();
  bufferevent* const bev = bufferevent_socket_new(base, -1, 0);
  sockaddr_un local{.sun_family = AF_UNIX, .sun_path = {}};
  std::memset(local.sun_path, 'x', sizeof local.sun_path);
  auto* const address = reinterpret_cast<sockaddr*>(&local);
  EXPECT_EQ(bufferevent_socket_set_conn_address_(bev, address, sizeof local), 0);
  EXPECT_EQ(std::memcmp(bufferevent_socket_get_conn_address_(bev), &local, sizeof local), 0);
  std::array<char, sizeof(sockaddr_storage) + 1> too_long{};
  EXPECT_EQ(bufferevent_socket_set_conn_address_(bev, reinterpret_cast<sockaddr*>(too_long.data()),
                                                 too_long.size()),
            EVUTIL_EAI_FAIL);
  EXPECT_EQ(std::memcmp(bufferevent_socket_get_conn_address_(bev), &local, sizeof local), 0);
  bufferevent_free(bev);
  event_base_free(base);
}

}  // namespace
