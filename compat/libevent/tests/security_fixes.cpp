// The behaviour of the security patches of Debian's libevent 2.1.12-stable-8+deb12u1, as far as the
// functions are implemented: CVE-2026-63381, 63383, 63384, 63387 and 63388; and those of earlier
// reports about evdns. The tests pass on the original too. (63379, 63382 and 63385 concern evhttp.)

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

#include "evdns/nameserver.h"

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

/// A server with one request, which a socket has sent.
struct Request {
  Request() {
    const int fd = bound_socket();
    const sockaddr_in address = loopback(port_of(fd));
    connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    port = evdns_add_server_port_with_base(
        base, fd, 0,
        [](evdns_server_request* request, void* argument) {
          static_cast<Request*>(argument)->received = request;
        },
        this);
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() {
    evdns_close_server_port(port);
    event_base_loop(base, EVLOOP_NONBLOCK);
    close(client);
    event_base_free(base);
  }
  void send(const std::string& query) {
    ::send(client, query.data(), query.size(), 0);
    for (int i = 0; i < 5; ++i) event_base_loop(base, EVLOOP_NONBLOCK);
  }

  event_base* base = event_base_new();
  int client = bound_socket();
  evdns_server_port* port = nullptr;
  evdns_server_request* received = nullptr;
};

const std::string header = bytes("\1\2\1\0\0\1\0\0\0\0\0\0");

TEST(CVE_2026_63387, a_name_may_end_at_the_end_of_the_buffer_for_a_response) {
  const std::string data(1500, 'x');
  const std::string name = "a." + std::string(50, 'b');
  for (int size = 1300; size < 1500; ++size) {
    Request request;
    request.send(header + bytes("\1x\0\0\1\0\1"));
    ASSERT_NE(request.received, nullptr);
    for (int section = 0; section < 2; ++section) {
      EXPECT_EQ(evdns_server_request_add_reply(request.received, section, name.c_str(), 16, 1, 1,
                                               section == 0 ? size : 0, section,
                                               section == 0 ? data.c_str() : "c"),
                0);
    }
    EXPECT_EQ(evdns_server_request_respond(request.received, 0), 0);
    char response[2000];
    const ssize_t got = recv(request.client, response, sizeof response, 0);
    ASSERT_GE(got, 12);
    EXPECT_LE(got, 512);
    EXPECT_EQ(response[2] & 2, 2);  // Truncated.
  }
}

TEST(CVE_2016_10195, a_label_ends_with_the_packet) {
  Request request;
  for (unsigned length = 1; length < 64; ++length)
    request.send(header + static_cast<char>(length) + std::string(length - 1, 'a'));
  request.send(header + "\x3f" + std::string(62, 'a') + bytes("\0\0\1\0\1"));
  EXPECT_EQ(request.received, nullptr);
}

TEST(CVE_2016_10197, a_name_may_be_empty) {
  event_base* const base = event_base_new();
  evdns_base* const dns = evdns_base_new(base, 0);
  evdns_base_search_add(dns, "search.test");
  Result result;
  EXPECT_EQ(evdns_base_resolve_ipv4(dns, "", 0, &Result::on_result, &result), nullptr);
  evdns_base_free(dns, 0);
  event_base_free(base);
}

}  // namespace
