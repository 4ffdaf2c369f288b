// Reads the routes and rules of the kernel by rtnetlink(7), and finds the ranges of destinations
// that have one source address.
#include "dns/addresses/routes.h"

#include <linux/fib_rules.h>
#include <linux/if_addrlabel.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>

#include "base/seccomp.h"

namespace tambour::dns::detail {
namespace {

/// Reading that many takes less than a millisecond.
constexpr std::size_t bounds_max = 8192;
constexpr std::size_t receive_bytes = std::size_t{32} << 10;

template <class Value>
bool copy_from(std::span<const std::byte> bytes, Value& into) noexcept {
  if (bytes.size() < sizeof into) return false;
  std::memcpy(&into, bytes.data(), sizeof into);
  return true;
}

std::span<const std::byte> after(std::span<const std::byte> bytes, std::size_t size) noexcept {
  return bytes.subspan(std::min(bytes.size(), size));
}

IpAddress parse(int family, std::span<const std::byte> bytes) noexcept {
  // The bytes may be none: a default route has no destination.
  const auto copy_to = [&](auto& address) {
    const auto used = bytes.first(std::min(bytes.size(), address.size()));
    std::ranges::copy(used, std::as_writable_bytes(std::span(address)).begin());
  };
  IpAddress::V4Bytes v4{};
  IpAddress::V6Bytes v6{};
  copy_to(v4);
  copy_to(v6);
  return family == AF_INET6 ? IpAddress(v6) : IpAddress(v4);
}

IpAddress v4(std::uint8_t first, std::uint8_t others = 0) noexcept {
  return IpAddress(IpAddress::V4Bytes{first, others, others, others});
}

IpAddress v6(std::uint8_t first, std::uint8_t second) noexcept {
  return IpAddress(IpAddress::V6Bytes{first, second});
}

}  // namespace

/// One question to the kernel.
struct Routes::Dump {
  std::uint16_t type;  ///< Of the question.
  std::uint8_t family;
  std::uint16_t answer_type;
  std::size_t head_bytes;  ///< Of an answer. Its first byte is the family.
  std::size_t bits_at;     ///< Where the head has the length of the prefix.
  std::uint16_t prefix;    ///< The attribute with the prefix.
};

IpAddress Routes::range_of(const IpAddress& address) const noexcept {
  if (begins_.empty() || address.zone() != 0) return address;
  const auto next = std::ranges::upper_bound(begins_, address.mapped_bytes());
  const IpAddress first(*std::prev(next));
  return address.is_v6() ? first : first.unmapped();
}

void Routes::add(const IpAddress& prefix, unsigned bits) {
  Key first = prefix.mapped_bytes();
  if (!prefix.is_v6()) bits += 96;
  Key last = first;
  for (unsigned i = 0; i < first.size(); ++i) {
    const unsigned kept = std::clamp(bits, i * 8, i * 8 + 8) - i * 8;
    const auto rest = static_cast<std::uint8_t>(0xffU >> kept);
    first[i] = static_cast<std::uint8_t>(first[i] & ~rest);
    last[i] = static_cast<std::uint8_t>(last[i] | rest);
  }
  begins_.push_back(first);
  // The next range begins after the last address, which may be the last of all.
  for (std::size_t i = last.size(); i-- != 0;) {
    if (++last[i] == 0) continue;
    begins_.push_back(last);
    return;
  }
}

bool Routes::take(std::span<const std::byte> message, const Dump& dump) {
  if (message.size() < dump.head_bytes) return false;
  // A kernel without the family answers for all others.
  const auto family = static_cast<std::uint8_t>(message[0]);
  if (family != dump.family) return true;
  const auto bits = static_cast<unsigned>(message[dump.bits_at]);
  IpAddress prefix = parse(family, {});
  for (auto left = after(message, NLMSG_ALIGN(dump.head_bytes)); !left.empty();) {
    rtattr attribute;
    if (!copy_from(left, attribute) || attribute.rta_len < RTA_LENGTH(0)) break;
    if (attribute.rta_len > left.size()) return false;
    const bool is_route = dump.type == RTM_GETROUTE;
    if (is_route && (attribute.rta_type == RTA_MULTIPATH || attribute.rta_type == RTA_NH_ID))
      return false;
    if (attribute.rta_type == dump.prefix)
      prefix = parse(family, left.first(attribute.rta_len).subspan(RTA_LENGTH(0)));
    left = after(left, RTA_ALIGN(attribute.rta_len));
  }
  add(prefix, bits);
  // Of several addresses of an interface, the kernel chooses the one that has the longest prefix in
  // common with the destination: RFC 6724, section 5, rule 8.
  rtmsg route;
  const bool is_own = dump.type == RTM_GETROUTE && prefix.is_v6() && bits == 128 &&
                      copy_from(message, route) && route.rtm_type == RTN_LOCAL;
  for (unsigned i = 1; is_own && i < bits; ++i) add(prefix, i);
  return begins_.size() <= bounds_max;
}

bool Routes::read(backend::System& system, int fd, const Dump& dump) {
  struct {
    nlmsghdr head;
    rtmsg body;  // The others begin with the family, too, and are not longer.
  } request{};
  request.head = {.nlmsg_len = sizeof request,
                  .nlmsg_type = dump.type,
                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                  .nlmsg_seq = 0,
                  .nlmsg_pid = 0};
  request.body.rtm_family = dump.family;
  if (system.send(fd, &request, sizeof request, 0) < 0) return false;
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(receive_bytes);
  for (;;) {
    const ssize_t got = system.recv(fd, buffer.get(), receive_bytes, MSG_DONTWAIT | MSG_TRUNC);
    if (got <= 0 || static_cast<std::size_t>(got) > receive_bytes) return false;
    nlmsghdr head;
    for (std::span<const std::byte> left(buffer.get(), static_cast<std::size_t>(got));
         copy_from(left, head); left = after(left, NLMSG_ALIGN(head.nlmsg_len))) {
      const bool is_whole = head.nlmsg_len >= sizeof head && head.nlmsg_len <= left.size();
      if (!is_whole || (head.nlmsg_flags & NLM_F_DUMP_INTR) != 0) return false;
      const auto body = after(left.first(head.nlmsg_len), NLMSG_HDRLEN);
      if (head.nlmsg_type == NLMSG_DONE) return true;
      if (head.nlmsg_type == NLMSG_ERROR) {
        nlmsgerr error;
        // The kernel may have no rules, or no IPv6.
        return copy_from(body, error) &&
               (error.error == -EOPNOTSUPP || error.error == -EAFNOSUPPORT);
      }
      if (head.nlmsg_type == dump.answer_type && !take(body, dump)) return false;
    }
  }
}

bool Routes::read_all(backend::System& system, int fd) {
  // What the kernel treats differently without a route for it; and all addresses of both families.
  for (const IpAddress& ip_address : {v4(0), v4(0xff, 0xff)}) add(ip_address, 32);
  add(v4(224), 4);
  add(v4(0), 0);
  add(v6(0, 0), 0);
  add(v6(0, 0), 128);
  add(v6(0xfe, 0x80), 10);
  add(v6(0xfe, 0xc0), 10);
  add(v6(0xff, 0), 8);
  constexpr std::array<std::uint8_t, 2> families{AF_INET, AF_INET6};
  for (const std::uint8_t family : families) {
    const Dump routes{.type = RTM_GETROUTE,
                      .family = family,
                      .answer_type = RTM_NEWROUTE,
                      .head_bytes = sizeof(rtmsg),
                      .bits_at = offsetof(rtmsg, rtm_dst_len),
                      .prefix = RTA_DST};
    const Dump rules{.type = RTM_GETRULE,
                     .family = family,
                     .answer_type = RTM_NEWRULE,
                     .head_bytes = sizeof(fib_rule_hdr),
                     .bits_at = offsetof(fib_rule_hdr, dst_len),
                     .prefix = FRA_DST};
    if (!read(system, fd, routes) || !read(system, fd, rules)) return false;
  }
  return read(system, fd,
              {.type = RTM_GETADDRLABEL,
               .family = AF_INET6,
               .answer_type = RTM_NEWADDRLABEL,
               .head_bytes = sizeof(ifaddrlblmsg),
               .bits_at = offsetof(ifaddrlblmsg, ifal_prefixlen),
               .prefix = IFAL_ADDRESS});
}

void Routes::load(backend::System& system) {
  begins_.clear();
  // A filter may kill the process for a socket of netlink.
  if (base::seccomp_filter_was_inherited() || base::seccomp_filter_is_installed()) return;
  const int fd = system.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return;
  bool is_complete = false;
  try {
    is_complete = read_all(system, fd);
  } catch (const std::bad_alloc&) {
    is_complete = false;
  }
  system.close(fd);
  if (!is_complete) return begins_.clear();
  std::ranges::sort(begins_);
  const auto repeated = std::ranges::unique(begins_);
  begins_.erase(repeated.begin(), repeated.end());
}

}  // namespace tambour::dns::detail
