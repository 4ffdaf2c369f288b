# Installs the library, its headers, a CMake package (find_package(tambour)) and a pkg-config file.
include(CMakePackageConfigHelpers)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)

install(TARGETS tambour EXPORT tambourTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/tambour DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(PROGRAMS tools/tambour-check-coroutines DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES tools/tambour_gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/tambour)
install(DIRECTORY tools/bpftrace DESTINATION ${CMAKE_INSTALL_DATADIR}/tambour)
install(EXPORT tambourTargets NAMESPACE tambour::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tambour)

get_target_property(tambour_type tambour TYPE)
configure_package_config_file(cmake/tambourConfig.cmake.in ${PROJECT_BINARY_DIR}/tambourConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tambour)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tambourConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tambourConfig.cmake
              ${PROJECT_BINARY_DIR}/tambourConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tambour)

# tambour.pc computes the prefix from its own location, so that `cmake --install --prefix` and
# archives unpacked elsewhere work unchanged. Absolute directories (some distributions set
# CMAKE_INSTALL_LIBDIR to one) are not relocatable and are written as given.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(tambour_pc_prefix "${CMAKE_INSTALL_PREFIX}")
  set(tambour_pc_libdir "${CMAKE_INSTALL_LIBDIR}")
else()
  file(RELATIVE_PATH tambour_pc_up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" tambour_pc_up "${tambour_pc_up}")
  set(tambour_pc_prefix "\${pcfiledir}/${tambour_pc_up}")
  set(tambour_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(tambour_pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
else()
  set(tambour_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
# If only the static library is installed, `pkg-config --libs` has to name what it needs: nothing
# tells pkg-config that a program links statically. Else that is private.
if(tambour_type STREQUAL "STATIC_LIBRARY")
  set(tambour_pc_requires "Requires")
  set(tambour_pc_libs " -pthread")
else()
  set(tambour_pc_requires "Requires.private")
  set(tambour_pc_libs "\nLibs.private: -pthread")
endif()
if(TAMBOUR_TLS)
  set(tambour_pc_tls ", libssl, libcrypto")
endif()
set(tambour_pc_definitions "")
if(NOT TAMBOUR_TASK_DUMP)
  set(tambour_pc_definitions " -DTAMBOUR_NO_TASK_DUMP")
endif()
set(tambour_pc_http "")
foreach(module IN LISTS tambour_http_modules)
  string(APPEND tambour_pc_http ", ${module}")
endforeach()
configure_file(cmake/tambour.pc.in ${PROJECT_BINARY_DIR}/tambour.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tambour.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
