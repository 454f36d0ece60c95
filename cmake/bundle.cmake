# Makes BUILD/feedrate-bundle.tar.xz, an archive that runs on a GPU host without network, packages or root access.
#   cmake -DSOURCE=<source folder> -DBUILD=<build folder> -DPYTHON=<python3> -P cmake/bundle.cmake
# The target `bundle` (cmake/bundle_target.cmake) runs this after building everything.
cmake_minimum_required(VERSION 3.25)

set(limit_mib 48)   # common limit of clusters' upload tools and job inboxes
set(stage "${BUILD}/bundle/feedrate-bundle")
set(archive "${BUILD}/feedrate-bundle.tar.xz")
file(REMOVE_RECURSE "${BUILD}/bundle")
file(REMOVE "${archive}")

# Copies the shared libraries of a program, including the loader, to a folder. `keep` is a pattern of file names.
function(copy_libraries program folder keep)
  execute_process(COMMAND ldd "${program}" OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "/[^ \n]+" paths "${lines}")
  foreach(path IN LISTS paths)
    get_filename_component(name "${path}" NAME)
    if(name MATCHES "${keep}" AND NOT path STREQUAL program)
      file(REAL_PATH "${path}" real)
      file(COPY_FILE "${real}" "${folder}/${name}" ONLY_IF_DIFFERENT)
    endif()
  endforeach()
endfunction()

# --- executables, and the libraries that they need beyond a Linux system's C library
file(MAKE_DIRECTORY "${stage}/bin" "${stage}/lib")
file(GLOB programs LIST_DIRECTORIES false "${BUILD}/bin/*")
foreach(program IN LISTS programs)
  get_filename_component(name "${program}" NAME)
  file(READ "${program}" magic LIMIT 4 HEX)
  # Suites that need no GPU and no server run on the machine that builds the bundle.
  if(NOT magic STREQUAL 7f454c46 OR (name MATCHES "^test_" AND NOT name MATCHES "^test_(gpu|redis|cli)$"))
    continue()
  endif()
  execute_process(COMMAND strip -o "${stage}/bin/${name}" "${program}" COMMAND_ERROR_IS_FATAL ANY)
  copy_libraries("${program}" "${stage}/lib" "^lib(prometheus|civetweb|benchmark|stdc\\+\\+|gcc_s|gomp|fmt|spdlog|hiredis)")
endforeach()
if(NOT EXISTS "${stage}/bin/feedrate")
  message(FATAL_ERROR "${BUILD}/bin/feedrate does not exist: build first")
endif()

# --- Redis with all its libraries, including the C library and the loader, so that the host's versions do not matter. The
# same loader starts feedrate if the host's C library is older than this machine's.
find_program(redis redis-server REQUIRED)
file(REAL_PATH "${redis}" redis)
file(MAKE_DIRECTORY "${stage}/redis/lib")
file(COPY_FILE "${redis}" "${stage}/redis/lib/redis-server")   # Redis chooses its mode by this name
copy_libraries("${redis}" "${stage}/redis/lib" ".")
copy_libraries("${BUILD}/bin/feedrate" "${stage}/redis/lib" ".")
file(GLOB loader RELATIVE "${stage}/redis/lib" "${stage}/redis/lib/ld-linux*")
set(executable_by_all OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
foreach(wrapped "redis-server;lib/redis-server" "feedrate;../bin/feedrate" "feedrate_full;../bin/feedrate_full"
                "feedrate_with_additions;../bin/feedrate_with_additions")
  list(POP_FRONT wrapped name path)
  file(WRITE "${stage}/redis/${name}" "#!/bin/sh
# Starts ${name} with the C library in this folder; exec keeps the process id and delivers signals directly.
here=$(cd \"$(dirname \"$0\")\" && pwd)
exec \"$here/lib/${loader}\" --library-path \"$here/lib\" \"$here/${path}\" \"$@\"
")
  file(CHMOD "${stage}/redis/${name}" PERMISSIONS ${executable_by_all})
endforeach()

# --- sources that need no build
file(GLOB_RECURSE schemas RELATIVE "${SOURCE}" "${SOURCE}/common/*.schema.json")
# Pages from the clone's top folder, from the code's folders, and from the published results (with figures, without
# rows).
file(GLOB pages RELATIVE "${SOURCE}" "${SOURCE}/*.md" "${SOURCE}/results/*.md")
file(GLOB_RECURSE beside RELATIVE "${SOURCE}" "${SOURCE}/common/*.md" "${SOURCE}/kernels/*.md" "${SOURCE}/libraries/*.md" "${SOURCE}/variants/*.md"
     "${SOURCE}/experiments/*.md" "${SOURCE}/results/reference/*.md" "${SOURCE}/results/reference/*.png")
foreach(path analysis tests experiments/specs experiments/setup.sh experiments/run_experiment.sh ${schemas} requirements.txt
             ${pages} ${beside} LICENSE)
  if(EXISTS "${SOURCE}/${path}")
    get_filename_component(folder "${path}" DIRECTORY)
    file(COPY "${SOURCE}/${path}" DESTINATION "${stage}/${folder}" PATTERN __pycache__ EXCLUDE PATTERN .pytest_cache EXCLUDE)
  endif()
endforeach()
file(COPY_FILE "${SOURCE}/cmake/bundle_run.sh" "${stage}/run")
file(CHMOD "${stage}/run" PERMISSIONS ${executable_by_all})

# --- the ctest labels of each executable, as lines `LABELS EXECUTABLE`, for `./run test`
execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --show-only=json-v1 WORKING_DIRECTORY "${BUILD}"
                OUTPUT_VARIABLE tests COMMAND_ERROR_IS_FATAL ANY)
file(WRITE "${BUILD}/bundle/tests.json" "${tests}")
execute_process(COMMAND "${PYTHON}" -c [[
import collections, json, os, sys
labels = collections.defaultdict(set)
for test in json.load(open(sys.argv[1]))["tests"]:
    program = (test.get("command") or [""])[0]
    name = os.path.basename(program)
    if name.startswith("test_") and os.path.exists(os.path.join(sys.argv[3], name)):
        for entry in test["properties"]:
            if entry["name"] == "LABELS":
                labels[name] |= set(entry["value"])
for program in sorted(labels):
    print(",".join(sorted(labels[program])), program)
]] "${BUILD}/bundle/tests.json" "${BUILD}" "${stage}/bin" OUTPUT_VARIABLE manifest COMMAND_ERROR_IS_FATAL ANY)
file(WRITE "${stage}/tests/executables.txt" "${manifest}")

# --- the archive
execute_process(COMMAND ${CMAKE_COMMAND} -E tar cJf "${archive}" feedrate-bundle WORKING_DIRECTORY "${BUILD}/bundle"
                COMMAND_ERROR_IS_FATAL ANY)
file(SIZE "${archive}" bytes)
math(EXPR mib "(${bytes} + 1048575) / 1048576")
if(mib GREATER_EQUAL limit_mib)
  message(FATAL_ERROR "${archive} is ${mib} MiB; it must be smaller than ${limit_mib} MiB")
endif()
file(STRINGS "${BUILD}/CMakeCache.txt" cached REGEX "^CMAKE_CUDA_ARCHITECTURES:")
string(REGEX REPLACE "^[^=]*=" "" architectures "${cached}")
string(REGEX REPLACE "\\\\?;" " " architectures "${architectures}")
if(architectures STREQUAL "")
  set(architectures "none (CPU-only)")
endif()
message(STATUS "${archive}: ${mib} MiB; CUDA architectures: ${architectures}")
