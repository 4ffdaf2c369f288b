// Simulation: loops over a virtual clock and a network in memory.
// Includes all headers of <tambour/sim/>.
#pragma once

#include <tambour/sim/dns_server.h>  // IWYU pragma: export
#include <tambour/sim/host.h>        // IWYU pragma: export
#include <tambour/sim/simulation.h>  // IWYU pragma: export
