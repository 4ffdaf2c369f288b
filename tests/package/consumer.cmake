# Copied as CMakeLists.txt into a project outside the tree.
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
find_package(tambour 0.1 REQUIRED)
add_executable(consumer consumer.cpp)
target_link_libraries(consumer PRIVATE tambour::tambour)
