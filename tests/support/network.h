// A network of one's own: a namespace with nothing but a loopback interface, on which packets can
// be lost or held back.
#pragma once

#include <functional>
#include <string>

namespace tambour::test {

/// Runs `body`, a part of a test, in a child process with a network namespace of its own. Skips the
/// test where the machine does not allow that, or lacks `ip` (iproute2). What fails in `body` fails
/// the test.
void in_own_network(const std::function<void()>& body);

/// Inside `body`: runs a command of a shell, and fails the test where that fails.
void command(const std::string& line);

/// Whether a program of that name is there to be run.
bool has_program(const std::string& name);

}  // namespace tambour::test
