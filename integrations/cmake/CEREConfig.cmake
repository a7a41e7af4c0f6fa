# find_package(CERE) for CMake 3.24 and later: the command, and targets that study programs of the project.
#
#   find_package(CERE)
#   add_executable(app main.c)
#   if(CERE_FOUND)
#     cere_add_study(app ARGUMENTS 200 2000)
#   endif()
#
# `cmake --build build --target study-app` then builds the project a second time under CERE, in build/cere, runs the program with these
# arguments, replays its hot regions and writes build/cere/app.html. The project's own build is not touched.
#
# Variables: CERE_EXECUTABLE, CERE_VERSION.

get_filename_component(_cere_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_program(CERE_EXECUTABLE cere HINTS "${_cere_prefix}/bin" DOC "The command cere")
mark_as_advanced(CERE_EXECUTABLE)
set(CERE_FOUND TRUE)
if(NOT CERE_EXECUTABLE)
  set(CERE_FOUND FALSE)
  set(CERE_NOT_FOUND_MESSAGE "there is no cere in ${_cere_prefix}/bin or in PATH: run `make install` of CERE")
elseif(CMAKE_VERSION VERSION_LESS 3.24)
  set(CERE_FOUND FALSE)
  set(CERE_NOT_FOUND_MESSAGE "CMake ${CMAKE_VERSION} is older than 3.24, which cere_add_study needs")
endif()

# What the user chose for this build, for the second one: written when the configuration ends.
function(_cere_write_cache)
  set(text "")
  get_cmake_property(names CACHE_VARIABLES)
  foreach(name IN LISTS names)
    get_property(type CACHE "${name}" PROPERTY TYPE)
    if(type STREQUAL "INTERNAL" OR type STREQUAL "STATIC")
      continue()
    endif()
    # Compilers and tools are found again: CERE takes their places.
    if(name MATCHES "^CMAKE_" AND NOT name MATCHES "^CMAKE_(BUILD_TYPE|PREFIX_PATH|MODULE_PATH|[A-Za-z]+_FLAGS.*|EXE_LINKER_FLAGS.*)$")
      continue()
    endif()
    if(name MATCHES "NOTFOUND$" OR "$CACHE{${name}}" MATCHES "NOTFOUND$")
      continue()
    endif()
    string(APPEND text "set(${name} [==[$CACHE{${name}}]==] CACHE ${type} \"\")\n")
  endforeach()
  if("$CACHE{CMAKE_BUILD_TYPE}" STREQUAL "")
    string(APPEND text "set(CMAKE_BUILD_TYPE Release CACHE STRING \"\" FORCE)\n")
  endif()
  file(WRITE "${CMAKE_BINARY_DIR}/cere/cache.cmake" "${text}")
endfunction()

# cere_add_study(TARGET [NAME name] [ARGUMENTS word...] [OPTIONS word...] [WORKING_DIRECTORY directory])
#
# Adds the target `study-NAME` (TARGET if no NAME is given). OPTIONS are those of `cere study`, such as --quick. The program runs in
# WORKING_DIRECTORY, the current build directory if none is given.
function(cere_add_study target)
  if(NOT CERE_FOUND)
    message(FATAL_ERROR "cere_add_study: ${CERE_NOT_FOUND_MESSAGE}")
  endif()
  if(NOT TARGET "${target}")
    message(FATAL_ERROR "cere_add_study: ${target} is no target: call it after add_executable")
  endif()
  get_target_property(type "${target}" TYPE)
  if(NOT type STREQUAL "EXECUTABLE")
    message(FATAL_ERROR "cere_add_study: ${target} is no program")
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;WORKING_DIRECTORY" "ARGUMENTS;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "cere_add_study: ${arg_UNPARSED_ARGUMENTS}: write the program's arguments behind ARGUMENTS")
  endif()
  if(NOT arg_NAME)
    set(arg_NAME "${target}")
  endif()
  if(NOT arg_WORKING_DIRECTORY)
    set(arg_WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL _cere_write_cache)
  set(root "${CMAKE_BINARY_DIR}/cere")
  set(generator "-G '${CMAKE_GENERATOR}'")
  if(CMAKE_TOOLCHAIN_FILE)
    string(APPEND generator " --toolchain '${CMAKE_TOOLCHAIN_FILE}'")
  endif()
  set(build "cmake -S '${CMAKE_SOURCE_DIR}' -B '${root}/build' ${generator} -C '${root}/cache.cmake'")
  set(build "${build} && cmake --build '${root}/build' --target ${target}")
  add_custom_target(
    "study-${arg_NAME}"
    COMMAND
      "${CERE_EXECUTABLE}" study --store "${root}/store" --build "${build}" -o "${root}/${arg_NAME}.html" ${arg_OPTIONS} --
      "${root}/build/$<PATH:RELATIVE_PATH,$<TARGET_FILE_DIR:${target}>,${CMAKE_BINARY_DIR}>/$<TARGET_FILE_NAME:${target}>"
      ${arg_ARGUMENTS}
    WORKING_DIRECTORY "${arg_WORKING_DIRECTORY}"
    COMMENT "Studying ${target}: ${root}/${arg_NAME}.html"
    USES_TERMINAL VERBATIM)
endfunction()
