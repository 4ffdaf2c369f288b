// A network and a configuration of name resolution for one process.
#pragma once

namespace bench {

/// Moves the process to a network with a loopback device only, whose privileged ports it may use,
/// and in which 127.0.0.1 is the name server: /etc/resolv.conf, /etc/hosts and /etc/nsswitch.conf
/// are replaced, for this process only. Call it before there are threads.
void enter_own_network();

}  // namespace bench
