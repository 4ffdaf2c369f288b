// File systems: names of files, directories, whole and temporary files, changes.
// Includes all headers of <tambour/fs/>.
#pragma once

#include <tambour/fs/contents.h>   // IWYU pragma: export
#include <tambour/fs/directory.h>  // IWYU pragma: export
#include <tambour/fs/paths.h>      // IWYU pragma: export
#include <tambour/fs/status.h>     // IWYU pragma: export
#include <tambour/fs/temporary.h>  // IWYU pragma: export
#include <tambour/fs/watcher.h>    // IWYU pragma: export
