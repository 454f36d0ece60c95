# Decides whether this build has CUDA, for which GPUs, and enables the language. Included by the
# top CMakeLists.txt, or by that of libraries/ring or libraries/tensors where these are built by themselves.
#
# In:  FEEDRATE_CUDA = AUTO (CUDA where there is a compiler) | ON (it must be there) | OFF.
# Out: FEEDRATE_HAVE_CUDA, and where it is OFF FEEDRATE_NO_CUDA_REASON, for the executable to tell.
#      Where it is ON, the language CUDA is enabled and CUDA::cudart_static, CUDA::nvtx3 and the like can be linked.
#
# The compiler: CMAKE_CUDA_COMPILER or CUDACXX if set, else PATH, /usr/local/cuda, and last .cuda/ in the source folder,
# which experiments/setup.sh fills from PyPI where a machine has no toolkit.

set(FEEDRATE_CUDA AUTO CACHE STRING "CUDA: AUTO (where there is a compiler), ON or OFF")
set_property(CACHE FEEDRATE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(FEEDRATE_HAVE_CUDA OFF)
set(FEEDRATE_NO_CUDA_REASON "")

# Sets `reason` to why CUDA cannot be enabled, or to nothing when CMAKE_CUDA_COMPILER is set and works.
macro(_feedrate_find_cuda reason)
  set(${reason} "")
  if(NOT CMAKE_CUDA_COMPILER)
    unset(CMAKE_CUDA_COMPILER CACHE)   # a check that failed is repeated: a toolkit may have come since
    if(NOT DEFINED ENV{CUDACXX})
      find_program(FEEDRATE_NVCC nvcc PATHS /usr/local/cuda/bin "${CMAKE_CURRENT_LIST_DIR}/../.cuda/bin" NO_CACHE)
      if(FEEDRATE_NVCC)
        set(ENV{CUDACXX} "${FEEDRATE_NVCC}")
      endif()
    endif()
    if(DEFINED ENV{CUDACXX})
      include(CheckLanguage)
      check_language(CUDA)
      if(NOT CMAKE_CUDA_COMPILER)
        set(${reason} "the CUDA compiler $ENV{CUDACXX} does not work with this C++ compiler")
      endif()
    else()
      set(${reason} "no CUDA compiler (nvcc) was found")
    endif()
  endif()
endmacro()

# The machine's own GPU if it has one, else (or with FEEDRATE_EVERY_GPU) every one from Ampere on, and PTX for those to come.
option(FEEDRATE_EVERY_GPU "Device code for every GPU from Ampere on, whatever this machine has" OFF)
function(_feedrate_cuda_architectures out)
  find_program(smi nvidia-smi NO_CACHE)
  set(gpus "")
  if(smi)
    execute_process(COMMAND "${smi}" -L OUTPUT_VARIABLE gpus ERROR_QUIET TIMEOUT 30)
  else()
    file(GLOB gpus "/dev/nvidia[0-9]")
  endif()
  if(NOT FEEDRATE_EVERY_GPU AND gpus MATCHES "^GPU|/dev/nvidia")
    set(${out} native PARENT_SCOPE)
  else()
    set(${out} "80-real;86-real;89-real;90" PARENT_SCOPE)
  endif()
endfunction()

if(FEEDRATE_CUDA STREQUAL "OFF")
  set(FEEDRATE_NO_CUDA_REASON "built with FEEDRATE_CUDA=OFF")
else()
  _feedrate_find_cuda(FEEDRATE_NO_CUDA_REASON)
  if(NOT FEEDRATE_NO_CUDA_REASON)
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      _feedrate_cuda_architectures(_architectures)
      set(CMAKE_CUDA_ARCHITECTURES "${_architectures}" CACHE STRING "GPU architectures to compile for" FORCE)
    endif()
    enable_language(CUDA)
    # nvcc has C++20 since 12.0, which CMake 3.25 does not know yet.
    foreach(kind STANDARD EXTENSION)
      if(NOT CMAKE_CUDA20_${kind}_COMPILE_OPTION)
        set(CMAKE_CUDA20_${kind}_COMPILE_OPTION "-std=c++20")
      endif()
    endforeach()
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.0)
      set(FEEDRATE_NO_CUDA_REASON "CUDA ${CMAKE_CUDA_COMPILER_VERSION} is too old for C++20: 12.0 or later")
    else()
      # CMake 3.25's module fails on CUDA 13, which has no nvToolsExt, unless that target is there.
      if(CMAKE_VERSION VERSION_LESS 3.26 AND NOT TARGET CUDA::nvToolsExt)
        add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
      endif()
      find_package(CUDAToolkit REQUIRED GLOBAL)
      set(FEEDRATE_HAVE_CUDA ON)
    endif()
  endif()
  if(FEEDRATE_CUDA STREQUAL "ON" AND NOT FEEDRATE_HAVE_CUDA)
    message(FATAL_ERROR "FEEDRATE_CUDA=ON, but ${FEEDRATE_NO_CUDA_REASON}")
  endif()
endif()

if(FEEDRATE_HAVE_CUDA)
  message(STATUS "Feedrate: CUDA ${CMAKE_CUDA_COMPILER_VERSION} (${CMAKE_CUDA_COMPILER}) for ${CMAKE_CUDA_ARCHITECTURES}")
else()
  message(STATUS "Feedrate: a CPU-only build: ${FEEDRATE_NO_CUDA_REASON}")
endif()
