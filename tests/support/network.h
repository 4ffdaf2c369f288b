// Network namespaces for tests: only a loopback interface, on which packets can be dropped or
// delayed; and what the kernel does with packets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tambour::test {

/// Runs `body` in a child process with a network namespace of its own. Skips the test if the
/// machine does not allow that or `ip` (iproute2) is not installed. A failure in `body` fails the
/// test.
void in_own_network(const std::function<void()>& body);

/// Runs a shell command inside `body`, and fails the test if the command fails.
void command(const std::string& line);

/// Adds an address to the loopback interface inside `body`, and waits until it can be used.
void add_ipv6_address(const std::string& address, int prefix);

/// Returns how many packets the kernel has dropped because the backlog of a processor was full
/// (net.core.netdev_max_backlog). Any process that sends much fills it, over loopback too, and the
/// packets of others are dropped with its own.
std::uint64_t packets_dropped();

/// Returns whether the program is installed.
bool has_program(const std::string& name);

}  // namespace tambour::test
