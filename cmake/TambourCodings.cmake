# The libraries of the content codings of HTTP, each of which can be disabled.
set(tambour_codings "")          # The targets to link.
set(tambour_codings_modules "")  # The modules for pkg-config.
set(tambour_codings_packages "") # For tambourConfig.cmake: "PREFIX=module,module".

function(tambour_coding option prefix package)
  if(NOT ${option})
    target_compile_definitions(tambour_options INTERFACE TAMBOUR_NO_${prefix})
    return()
  endif()
  pkg_check_modules(${prefix} IMPORTED_TARGET ${ARGN})
  list(JOIN ARGN "," modules)
  if(NOT ${prefix}_FOUND)
    message(FATAL_ERROR "${modules} was not found. Install it (${package}), or configure with "
                        "-D${option}=OFF.")
  endif()
  set(tambour_codings ${tambour_codings} PkgConfig::${prefix} PARENT_SCOPE)
  set(tambour_codings_modules ${tambour_codings_modules} ${ARGN} PARENT_SCOPE)
  set(tambour_codings_packages "${tambour_codings_packages} ${prefix}=${modules}" PARENT_SCOPE)
endfunction()

tambour_coding(TAMBOUR_ZLIB ZLIB zlib1g-dev zlib)
tambour_coding(TAMBOUR_BROTLI BROTLI libbrotli-dev libbrotlienc libbrotlidec)
tambour_coding(TAMBOUR_ZSTD ZSTD libzstd-dev libzstd)
