// Attaches a BPF program that selects the listener of the processor on which a connection arrives.
#include "server/reuse_port.h"

#include <linux/filter.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <new>
#include <vector>

#include "base/failure.h"

namespace tambour::detail::server {

int only_processor_of_this_thread() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) != 1) return -1;
  int processor = 0;
  while (!CPU_ISSET(processor, &set)) ++processor;
  return processor;
}

Result<> steer_by_processor(backend::System& system, int listener,
                            std::span<const int> processors) noexcept {
  std::vector<sock_filter> program;
  const auto add = [&](unsigned code, std::uint32_t operand, unsigned if_not = 0) {
    program.push_back({.code = static_cast<std::uint16_t>(code),
                       .jt = 0,
                       .jf = static_cast<std::uint8_t>(if_not),
                       .k = operand});
  };
  try {
    // Loads the CPU that runs the filter (SKF_AD_CPU, an ancillary offset).
    add(BPF_LD | BPF_W | BPF_ABS, std::uint32_t(SKF_AD_OFF + SKF_AD_CPU));
    std::uint32_t index = 0;
    for (const int processor : processors) {
      add(BPF_JMP | BPF_JEQ | BPF_K, std::uint32_t(processor), 1);
      add(BPF_RET | BPF_K, index++);
    }
    add(BPF_ALU | BPF_MOD | BPF_K, index);
    add(BPF_RET | BPF_A, 0);
  } catch (const std::bad_alloc&) {
    return base::failure(ENOMEM);
  }
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()),
                          .filter = program.data()};
  if (system.setsockopt(listener, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &filter, sizeof filter) !=
      0)
    return base::failure(errno);
  return {};
}

}  // namespace tambour::detail::server
